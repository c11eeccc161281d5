/**
 * What `pagewire/dev` is where it does nothing: the Vite plugin's modules call it there too. It says so once; on a
 * server it is silent: there is no page.
 */
export function inert() {
  if (typeof document === "object")
    console.warn(
      "pagewire/dev does nothing here: this build is not for development. Leave the import out of it; or, to develop, " +
        'give the bundler the condition "development".',
    );
  const same = <Maker>(maker: Maker): Maker => maker;
  return { share: (): (() => void) => () => {}, stores: same, pinia: same, queries: same };
}

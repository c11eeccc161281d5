/** What `pagewire/dev` is where it does nothing. It says so once; on a server it is silent: there is no page. */
export function inert() {
  if (typeof document === "object")
    console.warn(
      "pagewire/dev does nothing here: this build is not for development. Leave the import out of it; or, to develop, " +
        'give the bundler the condition "development".',
    );
  return { share: (): (() => void) => () => {} };
}

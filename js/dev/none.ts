/**
 * dist/dev.none.js: `pagewire/dev` where the bundler does not say that it builds for development.
 * It does nothing, and says so once. On a server it is silent: there is no page.
 */
if (typeof document === "object")
  console.warn(
    "pagewire/dev does nothing here: this build is not for development. Leave the import out of it; or, to develop, " +
      'give the bundler the condition "development".',
  );
export const share = (): (() => void) => () => {};

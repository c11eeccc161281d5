/**
 * dist/next.js and .cjs: `withPagewire`, for Next.js' configuration. The dev server then puts
 * `pagewire/dev` into each page, before the app's own scripts. A build is left as it is.
 */
import type * as types from "../next.d.ts";

declare const process: { cwd(): string };

type Config = { instrumentationClientInject?: string[]; env?: object };

export const withPagewire: typeof types.withPagewire = (given, { gateway } = {}) => {
  const withDev = async (phase: string, context: object) => {
    const config = (await (typeof given === "function" ? given(phase, context as never) : given)) as Config | undefined;
    if (phase !== "phase-development-server") return config ?? {};
    return {
      ...config,
      instrumentationClientInject: [...(config?.instrumentationClientInject ?? []), "pagewire/dev"],
      env: { ...config?.env, PAGEWIRE_ROOT: process.cwd(), ...(gateway && { PAGEWIRE_GATEWAY: gateway }) },
    };
  };
  // Other plugins copy the members of what they are given: without these they would lose them all.
  return Object.assign(withDev, typeof given === "function" ? {} : given) as never;
};
export default withPagewire;

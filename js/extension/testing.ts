/**
 * The inner functions that js/test/extension/ tests; bundled to dist/test/extension.mjs, never
 * shipped.
 */
export { documents as keep, Live } from "./documents.ts";
export { documents } from "./worker.ts";
export { nativeMessaging } from "./nativemessaging.ts";
export { changed, pretty, Shown, what } from "../parts/text.ts";
export { warnings } from "../inspector/warnings.ts";
export { Picked, viewOn } from "./picked.ts";
export { Picking } from "./picking.ts";
export { Share } from "./shares.tsx";
export { Shows } from "./shows.ts";
export { FrontTab, TabCount } from "./reports.ts";
export { Targets } from "./tabs.ts";
export { answer, prove, whereOf } from "./prove.ts";

/** What the tests in js/test/extension/ look at from inside; bundled to dist/test/extension.mjs, never shipped. */
export { documents as keep, Live } from "./documents.ts";
export { documents } from "./worker.ts";
export { nativeMessaging } from "./nativemessaging.ts";
export { answer, prove, whereOf } from "./prove.ts";

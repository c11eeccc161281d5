/**
 * The build replaces the global setTimeout by it: a core that waits must not keep Node running when
 * the tests end.
 */
const begin = (...args: Parameters<typeof globalThis.setTimeout>): ReturnType<typeof globalThis.setTimeout> => {
  const timer = globalThis.setTimeout(...args);
  (timer as { unref?(): void }).unref?.();
  return timer;
};

export { begin as setTimeout };

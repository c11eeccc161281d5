// The gateway runs this in a world of its own in a document, after dist/pagewire.shown.js, when an agent reads
// what the document shows or waits for it. `name` is the binding of that world: "c" says that it has changed,
// "wID MS" asks to be woken. The gateway keeps the time, since browsers slow the timers of hidden tabs down,
// and so a reader whose gateway has died does nothing any more.
((name) => {
  const tell = globalThis[name];
  // Of this world, from before the document was frozen. An element of that name is none.
  if (Object.hasOwn(globalThis, "pagewireReader")) globalThis.pagewireReader.stop();
  const waiting = new Map();
  let last = 0;
  const wait = (ms) =>
    new Promise((done) => {
      waiting.set(`${++last}`, done);
      tell(`w${last} ${Math.ceil(ms)}`);
    });
  const page = globalThis.pagewireShown(document, { now: () => performance.now(), wait });
  const view = page.view(() => tell("c"));
  globalThis.pagewireReader = {
    read: ({ from = 0, links = 0 }) => view.read({ from, links: links > 0 }),
    watch: (on) => view.watch(on),
    wake: (id) => {
      waiting.get(id)?.();
      waiting.delete(id);
    },
    stop: () => page.stop(),
  };
  return globalThis.pagewireReader;
})

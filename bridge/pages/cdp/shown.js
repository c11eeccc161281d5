// The gateway runs this in a world of its own in a document, after dist/pagewire.shown.js, when an
// agent reads what the document shows or waits for it. `name` is the binding of that world: "cPART"
// says that a part has changed, or without a name the whole, "wID MS" asks to be woken. The gateway
// keeps the time, since browsers slow the timers of hidden tabs down, and so a reader whose gateway
// has died does nothing any more.
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
  const views = new Map();
  const viewOf = ({ name, part }) => {
    const rule = JSON.stringify(part);
    const before = views.get(name);
    if (before && before.rule === rule) return before.view;
    before?.view.watch(false);
    views.delete(name);
    if (name && !part) return; // there is no rule any more, and it is not the whole page
    const view = page.view(() => tell(`c${name}`), part);
    views.set(name, { rule, view });
    return view;
  };
  globalThis.pagewireReader = {
    read: ({ options: { from = 0, links = 0 }, ...of }) => viewOf(of)?.read({ from, links: links > 0 }),
    watch: ({ on, ...of }) => viewOf(of)?.watch(on),
    ready: () => {},
    // After dist/pagewire.pick.js. Null if no rule would find the element.
    pick: async (element) => {
      const rule = globalThis.pagewirePick(document, element);
      return rule ? { rule, text: (await page.view(() => {}, rule).read()) ?? "" } : null;
    },
    wake: (id) => {
      waiting.get(id)?.();
      waiting.delete(id);
    },
    stop: () => page.stop(),
  };
  return globalThis.pagewireReader;
})

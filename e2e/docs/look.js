// TestLook's functions in a page, after axe-core. Each returns a list of problems.

// layoutProblems waits until the whole page is drawn.
globalThis.layoutProblems = async () => {
  await document.fonts.ready;
  const loaded = (image) =>
    image.complete ||
    new Promise((end) => {
      image.onload = end;
      image.onerror = end;
    });
  await Promise.all([...document.images].map(loaded));
  await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
  const problems = [];
  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth > clientWidth) {
    const wide = [...document.querySelectorAll("body *")].filter(
      (e) => e.getBoundingClientRect().right > clientWidth + 1,
    );
    const last = wide.slice(-3).map((e) => e.outerHTML.slice(0, 120));
    problems.push(`it scrolls sideways: ${scrollWidth} px, by ${last}`);
  }
  for (const image of document.images)
    if (!image.naturalWidth && image.checkVisibility()) problems.push(`a picture is not there: ${image.src}`);
  if (document.querySelector(".language-mermaid")) problems.push("a diagram is shown as its source");
  for (const diagram of document.querySelectorAll(".diagram")) {
    const [svg, ...more] = diagram.querySelectorAll("svg");
    const { width, height } = svg?.getBoundingClientRect() ?? {};
    if (!(width && height) || more.length || !svg.querySelector("text"))
      problems.push(`a diagram is empty: ${diagram.outerHTML.slice(0, 160)}`);
  }
  return problems;
};

globalThis.axeProblems = async () => {
  const { violations } = await globalThis.axe.run(document, { resultTypes: ["violations"] });
  return violations.map(({ id, help, nodes }) => {
    const where = nodes.slice(0, 3).map((n) => `${n.html.slice(0, 160)} ${n.any[0]?.message ?? ""}`);
    return `axe: ${id}: ${help}: ${where.join(" | ")}`;
  });
};

// What TestLook asks of a page, which has axe-core by then: what is wrong with it, as JSON, when all of it is drawn.
globalThis.look = async () => {
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
  const { violations } = await globalThis.axe.run(document, { resultTypes: ["violations"] });
  for (const { id, help, nodes } of violations) {
    const where = nodes.slice(0, 3).map((n) => `${n.html.slice(0, 160)} ${n.any[0]?.message ?? ""}`);
    problems.push(`axe: ${id}: ${help}: ${where.join(" | ")}`);
  }
  return JSON.stringify(problems);
};

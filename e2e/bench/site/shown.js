// Pages that know nothing of agents. The query, or else `asked`, says which: rows=N has N elements, kind=N moves by
// itself, lines and pre have a long text, busy is a dashboard, and each answer of /change is the text of changes.
{
  const { body } = document;
  const seconds = (s, f) => setInterval(f, s * 1000);
  const show = (html) => body.insertAdjacentHTML("beforeend", html);
  const clock = (html) => {
    show(html);
    seconds(1, () => (c.textContent = new Date().toISOString()));
  };
  const shake = (html, style) => {
    show(html);
    let i = 0;
    const frame = () => {
      style(c, i++);
      requestAnimationFrame(frame);
    };
    frame();
  };
  const turn = (s, html, step) => {
    show(html);
    let i = 0;
    const f = () => step(c, i++);
    f();
    seconds(s, f);
  };
  // The order is that of kinds in shown.go.
  const kinds = [
    () =>
      show(
        "<style>@keyframes s { to { transform: rotate(1turn) } } i { animation: s 1s linear infinite }</style><i>o</i>",
      ),
    () => turn(0.1, "<p id=c>Loading</p>", (e) => e.classList.toggle("b")),
    () => shake("<p id=c style='position:absolute'>Ball</p>", (e, i) => (e.style.translate = (i % 300) + "px")),
    () => turn(0.033, "<p id=c>Pulse</p>", (e, i) => (e.style.opacity = 0.5 + 0.5 * Math.sin(i / 5))),
    () => clock("<span id=c></span>"),
    () => clock("<time id=c></time>"),
    () =>
      turn(0.25, "<p><span id=c></span> / 12:00</p><div role=progressbar aria-label=Played id=bar></div>", (e, i) => {
        e.textContent = "0:" + (i >> 2);
        bar.setAttribute("aria-valuenow", i);
      }),
    () => turn(5, "<aside id=c></aside>", (e, i) => (e.innerHTML = `<h4>Buy ${i % 4}</h4><p>Cheap`)),
    () =>
      turn(
        4,
        "<h4 id=c></h4>",
        (e, i) => (e.textContent = ["Shoes for less", "New phones", "Fly to Rome", "Learn Go", "Tea"][i % 5]),
      ),
    () => turn(0.2, "<p id=c></p>", (e, i) => (e.textContent = i < 100 ? `Uploading ${i} %` : "Done")),
    () =>
      turn(
        3,
        "<div style='overflow:hidden;width:300px'><div id=c style='display:flex;transition:.5s'>" +
          [1, 2, 3].map((i) => `<p style='flex:0 0 300px'>Slide ${i}</p>`).join("") +
          "</div></div>",
        (e, i) => (e.style.transform = `translateX(-${(i % 3) * 300}px)`),
      ),
    () =>
      turn(3, "<div id=c><p>Slide 1<p>Slide 2<p>Slide 3</div>", (e, i) =>
        [...e.children].forEach((slide, n) => (slide.hidden = n !== i % 3)),
      ),
    () => turn(0.5, "<ul id=c></ul>", (e) => (e.innerHTML = "<li>One<li>Two")),
    () =>
      shake("<canvas id=c width=300 height=100></canvas>", (e, i) => e.getContext("2d").fillRect(i % 300, 50, 1, 1)),
    () => turn(2, "<ul id=c></ul>", (e, i) => e.insertAdjacentHTML("beforeend", "<li>line " + i)),
    () => turn(1, "<table><tr><td>ACME<td id=c></table>", (e) => (e.textContent = (Math.random() * 100).toFixed(2))),
  ];
  const [what, n] = (location.search.slice(1) || asked).split("=");
  if (what === "kind") kinds[n]();
  else if (what === "rows") {
    show("<p id=c>0</p>" + "<table>" + "<tr><td>name<td>Succeeded<td><a href=/>1m 0s</a>".repeat(n / 5) + "</table>");
  } else if (what === "busy") {
    // A dashboard: rows, a clock, a list of the last lines, and a value that is another each second.
    show("<table>" + "<tr><td>job<td>Succeeded<td>1m 0s".repeat(100) + "</table><p id=now></p><ul id=log></ul>");
    let i = 0;
    seconds(1, () => {
      const cells = document.querySelectorAll("td");
      cells[(i * 7) % 300].textContent = ["Queued", "Running", "Failed", "Succeeded"][i % 4] + " in step " + i;
      now.textContent = new Date().toISOString();
      if (++i % 2) log.insertAdjacentHTML("beforeend", "<li>line " + i);
      if (log.children.length > 50) log.firstChild.remove();
    });
  } else if (what === "lines" || what === "pre") {
    const lines = Array.from({ length: 900 }, (_, i) => `line ${i} of a text that somebody is writing just now`);
    show(what === "pre" ? `<pre>${lines.join("\n")}</pre>` : lines.map((line) => `<div>${line}</div>`).join(""));
  } else if (what === "changes") {
    show("<main><h1>Orders</h1><p id=c></main>");
    (async () => {
      for (let done = 0; ; done++) c.textContent = await (await fetch("/change?done=" + done)).text();
    })();
  }
}

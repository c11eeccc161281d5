// The widget forgets its token on a reload, so each document fetches a new one, as a person would paste it.
addEventListener("load", async () => {
  sessionStorage.clear();
  const widget = new module.exports();
  widget.registerResource(
    "state",
    "The page's state.",
    { uri: location.origin + "/state", mimeType: "text/plain" },
    (uri) => ({ contents: [{ uri, mimeType: "text/plain", text: state }] }),
  );
  widget.registerTool("state", "The page's state.", { type: "object", properties: {} }, () => ({
    content: [{ type: "text", text: state }],
  }));
  widget.connect(await (await fetch("/token")).text());
});

// Another resource of a page. It reads as the latest answer of /change.
{
  let shown = "0";
  const uri = location.origin + "/count";
  const context = document.modelContext ?? navigator.modelContext;
  context.registerResource({ uri, name: "count", read: () => shown });
  (async () => {
    for (;;) {
      shown = await (await fetch("/change")).text();
      context.notifyResourceUpdated(uri);
    }
  })();
}

// A resource, as a page that has just loaded offers it.
{
  const uri = location.origin + "/state";
  document.modelContext.registerResource({
    uri,
    name: "State",
    mimeType: "text/plain",
    read: async () => ({ contents: [{ uri, text: "text" }] }),
  });
}

let resources = 0;

// A resource with a URI of its own at the page's origin, which is unregistered when the test ends.
self.aResource = (t, members = {}) => {
  const uri = `${location.origin}/resource/${++resources}`;
  t.add_cleanup(() => {
    try {
      document.modelContext.unregisterResource(uri);
    } catch {
      // It is gone already, or never was.
    }
  });
  return { uri, name: "name", read: async () => ({ text: "" }), ...members };
};

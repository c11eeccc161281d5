// META: script=/resources/WebIDLParser.js
// META: script=/resources/idlharness.js

// https://github.com/webmachinelearning/webmcp/issues/151

idl_test(["webmcp-page-resources.tentative"], ["webmcp", "html", "dom"], (idl_array) => {
  idl_array.add_objects({ ModelContext: ["document.modelContext"] });
});

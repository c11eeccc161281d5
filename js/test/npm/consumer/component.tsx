// A consumer of the hook, with React's own types. It is compiled, never run.
import { useState } from "react";
import { type ResourceDescriptor, useResource } from "pagewire/react";

const descriptor: ResourceDescriptor = { uri: "/state", name: "State", mimeType: undefined };

export function useCounter(): void {
  const [state] = useState({ n: 1 });
  useResource(descriptor, state);
  useResource({ ...descriptor, read: (uri, { signal }) => ({ text: `${uri} ${signal.aborted}` }) });
  useResource({ ...descriptor, read: async () => "text" }, state.n);
  // The hook brings the page API's types with it.
  navigator.modelContext.notifyResourceUpdated("/state");
  // @ts-expect-error: without read there must be a value
  useResource(descriptor);
  // @ts-expect-error: no name
  useResource({ uri: "/state" }, state);
  // @ts-expect-error: a number is no contents
  useResource({ ...descriptor, read: () => 5 });
}

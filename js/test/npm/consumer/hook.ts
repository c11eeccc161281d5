// The hook where React's types are not installed. It is compiled, never run.
import { useResource } from "pagewire/react";

export const useText = (text: string): void => useResource({ uri: "/text", name: "Text" }, text);

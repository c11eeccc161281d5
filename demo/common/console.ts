/** The agent console of a demo page: fills `<section id="agent">`. Its parts: console/index.ts. */
import { startConsole } from "./console/index.ts";

startConsole();

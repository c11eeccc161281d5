/** The agent console of a demo page: fills `<section id="agent">`. What it is made of: console/index.ts. */
import { startConsole } from "./console/index.ts";

startConsole();

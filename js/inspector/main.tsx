// The inspector: the state of a gateway and its messages, in one page. feed.ts receives both.
//
// Names that pages and agents give are shown as text: never as markup, address or style.

import { render } from "preact";
import { takeTicket } from "./ticket.ts";
import { App } from "./app.tsx";
import { Feed } from "./feed.ts";
import { startTheme } from "../parts/theme.ts";

const session = takeTicket();
const root = document.getElementById("app")!;
const draw = () => render(<App feed={feed} redraw={draw} />, root);
startTheme(() => draw());
const url = `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/feed`;
const feed = new Feed(url, draw, async ({ send }) => send(JSON.stringify({ session: await session })));
draw();

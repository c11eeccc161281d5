// The inspector: what a gateway holds and does, in one page. feed.ts says where it comes from.
//
// Whatever pages and agents call themselves is shown as text: nothing here makes markup, an address or a style of it.

import { render } from "preact";
import { takeTicket } from "./ticket.ts";
import { App } from "./app.tsx";
import { Feed } from "./feed.ts";
import { startTheme } from "./theme.ts";

const session = takeTicket();
const root = document.getElementById("app")!;
const draw = () => render(<App feed={feed} redraw={draw} />, root);
startTheme(() => draw());
const feed = new Feed(draw, async () => JSON.stringify({ session: await session }));
draw();

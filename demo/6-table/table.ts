/**
 * The page: orders of a workshop, in a table that a person filters, sorts and edits. An agent sends its own queries.
 */
export {};

const statuses = ["open", "packed", "sent", "late"] as const;
type Status = (typeof statuses)[number];
interface Order {
  id: number;
  customer: string;
  city: string;
  status: Status;
  total: number;
}
interface Query {
  status?: Status;
  customer?: string;
  sort?: string;
}

const orders: Order[] = (
  [
    ["Ada Brandt", "Kiel", "open", 129],
    ["Bruno Conti", "Turin", "sent", 48.5],
    ["Carla Duarte", "Porto", "late", 310],
    ["Dmitri Egorov", "Riga", "packed", 76],
    ["Ada Brandt", "Kiel", "sent", 22.9],
    ["Eva Fuchs", "Graz", "open", 540],
    ["Farid Ghali", "Lyon", "packed", 88.4],
    ["Greta Holm", "Malmö", "late", 64],
    ["Bruno Conti", "Turin", "open", 199],
    ["Hana Ito", "Ghent", "sent", 415],
  ] as const
).map(([customer, city, status, total], i) => ({ id: 1041 + i, customer, city, status, total }));

// Pagewire: one resource, whose `uriSchema` defines the query parameters of its URI. Pagewire checks them and passes
// them to `read` typed; it refuses a query that does not fit the schema before `read` runs. One call notifies the
// watchers of all queries.

const context = navigator.modelContext;
const rowsURI = new URL("table/rows", location.href).href;

context.registerResource({
  uri: rowsURI,
  name: "rows",
  title: "Orders",
  description: "The orders, filtered and sorted as the query says; all of them without one.",
  mimeType: "application/json",
  uriSchema: {
    type: "object",
    properties: {
      status: { type: "string", enum: statuses },
      customer: { type: "string", maxLength: 40, description: "A part of the name" },
      sort: { type: "string", enum: ["id", "-id", "customer", "-customer", "total", "-total"] },
    },
    additionalProperties: false,
  },
  read: (_uri, { params }) => JSON.stringify(select(params as Query)),
});

function changed(order: Order, status: Status): void {
  order.status = status;
  context.notifyResourceUpdated(rowsURI);
}

// The table: the person's query, and the rows that it selects.

function select({ status, customer = "", sort = "id" }: Query): Order[] {
  const key = sort.replace("-", "") as "id" | "customer" | "total";
  const order = (a: Order, b: Order) => (a[key] < b[key] ? -1 : a[key] > b[key] ? 1 : a.id - b.id);
  const found = orders
    .filter((one) => (!status || one.status === status) && one.customer.toLowerCase().includes(customer.toLowerCase()))
    .sort(order);
  return sort.startsWith("-") ? found.reverse() : found;
}

const filters = document.getElementById("filters") as HTMLFormElement;
const body = document.getElementById("rows")!;
let sort = "id";

function show(): void {
  const given = Object.fromEntries([...new FormData(filters), ["sort", sort]].filter(([, value]) => value));
  const query = given as Query;
  body.replaceChildren(...select(query).map(row));
  for (const head of document.querySelectorAll<HTMLElement>("th[data-sort]")) {
    const by = head.dataset.sort!;
    const direction = sort === by ? "ascending" : sort === `-${by}` ? "descending" : "none";
    head.setAttribute("aria-sort", direction);
  }
  document.getElementById("none")!.hidden = body.childElementCount > 0;
  document.getElementById("query")!.textContent = `rows?${new URLSearchParams(given as Record<string, string>)}`;
}

const options = statuses.map((status) => `<option>${status}</option>`).join("");

function row(order: Order): HTMLElement {
  const tr = document.createElement("tr");
  tr.dataset.id = String(order.id);
  tr.innerHTML = `
    <td>${order.id}</td>
    <th scope="row">${order.customer}<span>${order.city}</span></th>
    <td><select aria-label="Status of order ${order.id}">${options}</select></td>
    <td>${order.total.toFixed(2)}</td>`;
  const select = tr.querySelector("select")!;
  select.value = tr.dataset.status = order.status;
  select.addEventListener("change", () => {
    // The row stays until the person filters again: it must not run away while the person edits it.
    tr.dataset.status = select.value;
    changed(order, select.value as Status);
  });
  return tr;
}

filters.addEventListener("input", show);
filters.addEventListener("submit", (event) => event.preventDefault());
for (const head of document.querySelectorAll<HTMLElement>("th[data-sort]")) {
  head.querySelector("button")!.addEventListener("click", () => {
    sort = sort === head.dataset.sort ? `-${head.dataset.sort}` : head.dataset.sort!;
    show();
  });
}
show();

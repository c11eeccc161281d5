// A page to try the extension on. To the extension it is a page like any other.
const visitors = document.getElementById("visitors");
const uri = new URL("visitors", location.href).href;
let count = 12;

// Pagewire: one resource, which the badge shows.

navigator.modelContext.registerResource({
  uri,
  name: "visitors",
  title: "Visitors",
  description: "How many people are in the museum now.",
  mimeType: "text/plain",
  read: () => String(count),
});

function add(n) {
  count = Math.max(0, count + n);
  visitors.textContent = String(count);
  navigator.modelContext.notifyResourceUpdated(uri);
}

document.getElementById("less").addEventListener("click", () => add(-1));
document.getElementById("more").addEventListener("click", () => add(1));
add(0);

// Reloads the page without a debugger.
addEventListener("load", () => fetch("/reload").then(() => location.reload()));

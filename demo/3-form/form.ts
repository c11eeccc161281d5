/**
 * The page: a sign-up form. It shows the error of a field when the person leaves it, and then with
 * each key.
 */
export {};

const form = document.getElementById("form") as HTMLFormElement;
const fields = [...form.querySelectorAll("input")];
/** Fields that show their errors: the person has left them, or tried to send the form. */
const touched = new Set<HTMLInputElement>();
let sent = false;

// Pagewire: agents get the same as the person: values, and the errors that show. A password is only
// `filled`, whatever the person types: only the text that `read` returns leaves the page.

const context = navigator.modelContext;
const formURI = new URL("form", location.href).href;

context.registerResource({
  uri: formURI,
  name: "form",
  title: "Sign-up form",
  description: "The form as the user has filled it in, with the errors that it shows. Secrets are left out.",
  mimeType: "application/json",
  annotations: { subscribeHint: true },
  read: () => JSON.stringify({ sent, ready: form.checkValidity(), fields: Object.fromEntries(fields.map(readField)) }),
});

function readField(field: HTMLInputElement): [string, object] {
  const value =
    field.type === "password"
      ? { filled: field.value !== "" }
      : { value: field.type === "checkbox" ? field.checked : field.value };
  const error = shownError(field);
  return [field.name, error ? { ...value, error } : value];
}

function changed(): void {
  context.notifyResourceUpdated(formURI);
  show();
}

// The form.

function errorOf({ name, value, validity }: HTMLInputElement): string {
  if (validity.valid) return "";
  switch (name) {
    case "name":
      return "Say how you want to be called.";
    case "email":
      return value ? "An address looks like ada@example.org." : "We need an address to write to.";
    case "password":
      return validity.tooShort || value.length < 10
        ? `Ten characters at least; there are ${value.length}.`
        : "Put a digit in it.";
    default:
      return "Nobody gets in without the rules of the house.";
  }
}

function shownError(field: HTMLInputElement): string {
  return touched.has(field) ? errorOf(field) : "";
}

function show(): void {
  for (const field of fields) {
    const error = shownError(field);
    const place = document.getElementById(field.getAttribute("aria-describedby")!)!;
    if (place.textContent !== error) place.textContent = error;
    field.setAttribute("aria-invalid", String(!!error));
  }
  const wrong = fields.filter((field) => shownError(field)).length;
  document.getElementById("says")!.textContent = sent
    ? "Welcome! You are signed up."
    : wrong
      ? `${wrong} ${wrong === 1 ? "field needs" : "fields need"} another look.`
      : "";
}

form.addEventListener("input", () => {
  sent = false;
  changed();
});
form.addEventListener("focusout", ({ target }) => {
  const field = target as HTMLInputElement;
  if (!fields.includes(field) || (!field.value && !touched.has(field))) return; // passing an empty field is fine
  touched.add(field);
  changed();
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  for (const field of fields) touched.add(field);
  sent = form.checkValidity();
  if (!sent) fields.find((field) => !field.validity.valid)?.focus();
  changed();
});
show();

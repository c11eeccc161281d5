/**
 * WebMCP's declarative tools, for browsers without them: a form with `toolname` and
 * `tooldescription` is a tool, and its named fields are the parameters. A call fills the form in as
 * a person would, and submits it only if it has
 * `toolautosubmit`. A browser with SubmitEvent.agentInvoked does all this by itself.
 *
 * Fields that no agent may read (contents.ts) are no parameters. Neither are files, and fields that
 * are hidden, disabled or read-only by their attributes: people must know what they submit. Styles
 * are not asked, since they also hide a form's later steps.
 */
import { fieldsOf, holds, is, isField, rememberAll, textOf } from "./contents.ts";
import { attribute, type Field, isPrivate, isSecret, privately } from "./secrets.ts";
import { api } from "./offer.ts";

/**
 * The attributes of a form that make it a tool; and the attributes of its elements that change the
 * parameters.
 */
export const toolAttributes = ["toolname", "tooldescription", "toolautosubmit"] as const;
const shaping = "toolparamdescription name type value min max multiple required readonly disabled hidden autocomplete";
/** Fields that are no parameters, and buttons that submit. */
const skipped =
  ":disabled,[readonly],[hidden],[hidden] *,datalist *,[type=file],[type=submit],[type=reset],[type=button],[type=image]";
const submits = "button:not([type=button],[type=reset],:disabled),input[type=submit]:not(:disabled)";

/** Whether the browser has no declarative tools of its own. */
export const makesTools = typeof SubmitEvent === "function" && !("agentInvoked" in SubmitEvent.prototype);

type Input = { [name: string]: unknown };
type Schema = { type: string; description?: string; enum?: string[]; items?: Schema };
/** One field; or the radio buttons, or the checkboxes, with the same name. */
type Parameter = { fields: Field[]; schema?: Schema | undefined };
type Call = { event?: SubmitEvent; answer?: Promise<unknown>; cancel(why: string): void };

/**
 * Form to its registered tool, as JSON text; the observer of its fields; and the controller that
 * ends the tool.
 */
const tools = new Map<HTMLFormElement, { text: string; observer: MutationObserver; end: AbortController }>();
/**
 * Form to its call, until the call is answered or, if the user has to submit the form, until the
 * submission.
 */
const calls = new Map<HTMLFormElement, Call>();
const submissions = new WeakMap<Event, Call>();

class Refusal extends Error {}

/** Makes, renews or withdraws the tool of a form that has come, gone or changed. */
export function renew(form: HTMLFormElement): void {
  const before = tools.get(form);
  const [name, description, automatic] = toolAttributes.map((name) => attribute(form, name));
  const isTool = holds(document, form) && typeof name === "string" && !isPrivate(form);
  // A form that is submitted without the user may have consequences that cannot be undone.
  const annotations = { consequentialHint: typeof automatic === "string" };
  const tool = isTool && { name, description: description ?? "", inputSchema: inputSchemaOf(form), annotations };
  const text = tool ? JSON.stringify(tool) : "";
  if (text === (before?.text ?? "")) return;
  before?.end.abort();
  before?.observer.disconnect();
  tools.delete(form);
  if (!tool) return;
  const observer = new MutationObserver(() => renew(form));
  observer.observe(form, { subtree: true, childList: true, attributeFilter: [...shaping.split(" "), privately] });
  const end = new AbortController();
  tools.set(form, { text, observer, end });
  void register(form, tool, end.signal);
}

/**
 * Renews the tools of forms that are gone, or whose attributes have changed. That ends their calls.
 */
export function renewAll(marked: readonly Node[]): void {
  for (const form of tools.keys())
    if (!holds(document, form) || marked.includes(form)) {
      calls.get(form)?.cancel("the page has changed the form");
      renew(form);
    }
}

async function register(form: HTMLFormElement, tool: { name: string }, signal: AbortSignal): Promise<void> {
  try {
    const context = api() as { [method: string]: ((...args: unknown[]) => unknown) | undefined };
    if (!context.registerTool) throw new Error("the page has no modelContext with registerTool");
    const execute = (input: Input, options?: { signal?: AbortSignal }) => call(form, input, options?.signal);
    const registered = context.registerTool({ ...tool, execute }, { signal });
    // Firefox's own context, of an older draft, ignores the signal.
    if (!context.executeTool) signal.addEventListener("abort", () => context.unregisterTool?.(tool.name));
    await registered;
  } catch (error) {
    if (!signal.aborted) console.error(`pagewire: toolname does not offer '${tool.name}' to agents:`, error, form);
  }
}

const isCheckable = (field: Field): field is HTMLInputElement => /^(checkbox|radio)$/.test(field.type);
const labelOf = (field: Field): string =>
  (field.labels?.[0] && textOf(field.labels[0])) || (attribute(field, "aria-label") ?? "");

function parametersOf(form: HTMLFormElement): Map<string, Parameter> {
  const found = new Map<string, Parameter>();
  rememberAll(form);
  for (const field of fieldsOf(form)) {
    if (!isField(field) || !field.name || is(field, skipped) || isSecret(field)) continue;
    const before = found.get(field.name)?.fields;
    if (!before) found.set(field.name, { fields: [field] });
    else if (isCheckable(field) && before[0]!.type === field.type) before.push(field);
  }
  for (const [name, one] of found) if (!(one.schema = schemaOf(one.fields[0]!, one.fields))) found.delete(name);
  return found;
}

/** A bound of a schema, if an attribute is a number: a browser ignores any other, such as "0%". */
const bound = (name: string, text: string) => text.trim() && Number.isFinite(+text) && { [name]: +text };

/** The schema of a parameter; undefined if there is nothing to choose. */
function schemaOf(field: Field, fields: Field[]): Schema | undefined {
  const given = fields.map((one) => attribute(one, "toolparamdescription")).find(Boolean);
  const isSelect = field instanceof HTMLSelectElement;
  if (!isSelect && field.type !== "radio" && fields.length === 1) {
    const { min, max } = field as HTMLInputElement;
    const type = /^(number|range)$/.test(field.type) ? "number" : field.type === "checkbox" ? "boolean" : "string";
    const range = type === "number" && { ...bound("minimum", min), ...bound("maximum", max) };
    return { type, ...range, description: given || labelOf(field) };
  }
  const labels = new Map<string, string>();
  if (!isSelect) for (const one of fields) labels.set(one.value, labelOf(one));
  else for (const one of field.options) if (!is(one, ":disabled") && !isPrivate(one)) labels.set(one.value, one.label);
  labels.delete(""); // clients refuse a schema with "" in an enum
  const words = [...labels].filter(([value, label]) => label && label !== value).map((one) => one.join(": "));
  const description = [given || (isSelect ? labelOf(field) : ""), words.join(", ")].filter(Boolean).join(". ");
  const items = { type: "string", enum: [...labels.keys()] };
  if (!labels.size) return;
  return /checkbox|multiple/.test(field.type) ? { type: "array", items, description } : { ...items, description };
}

function inputSchemaOf(form: HTMLFormElement): object {
  const parameters = [...parametersOf(form)];
  const required = parameters.filter(([, { fields }]) => fields.some((one) => one.required)).map(([name]) => name);
  const properties = Object.fromEntries(parameters.map(([name, { schema }]) => [name, schema]));
  return { type: "object", properties, required, additionalProperties: false };
}

const fits = (value: unknown, { type, enum: choices, items }: Schema): boolean => {
  if (items) return Array.isArray(value) && value.every((one) => fits(one, items));
  return `${typeof value}` === type && (!choices || choices.includes(value as string));
};

/**
 * Fills a form in. If a name, a type or a text is wrong, throws and leaves the form as it was. If
 * the page does not keep a value, throws and leaves the form as the page has it.
 */
function fill(form: HTMLFormElement, input: Input): void {
  const parameters = parametersOf(form);
  const values = Object.entries(input);
  for (const [name, value] of values) {
    const { fields = [], schema } = parameters.get(name) ?? {};
    if (!schema) throw new Refusal(`The form has no parameter '${name}'.`);
    if (!fits(value, schema)) throw new Refusal(`'${name}' is not of its schema, ${JSON.stringify(schema)}.`);
    const refuses = fields.find((field) => !keeps(field, value));
    if (refuses) throw new Refusal(`'${name}' takes no such value of type ${refuses.type}.`);
  }
  // A page may make a field anew for the value of another, before or after it: what it has not kept
  // is set once more.
  const done = new Map<string, { fields: Field[]; text: string | undefined }>();
  for (const isLast of [false, false, true])
    for (const [name, value] of values) {
      const before = done.get(name);
      const { fields = [], schema } = parametersOf(form).get(name) ?? {};
      // A page may lock a field once it has a value, such as a coupon: then it is no parameter.
      const own = fields.length ? fields : (before?.fields ?? []).filter((field) => isSent(form, field));
      if (own.length && has(own, value, before?.text)) continue;
      if (isLast || !schema || !fits(value, schema))
        throw new Refusal(`The form is partly filled in: the page does not keep this value of '${name}'.`);
      const [field] = fields as [Field];
      const { value: old } = field;
      const wrote = fields.map((one) => set(one, value))[0]!;
      const text = (parametersOf(form).get(name)?.fields[0] ?? field).value;
      // The page may write a text in its own way, but not take it back, or make another number of it.
      const made = `${wrote} ${text}`;
      const isOther = /^(number|range)$/.test(field.type) || !text || (text === old && written.get(field) !== made);
      const isKept = !isOther || isAlike(text, wrote);
      if (isKept) written.set(field, made);
      done.set(name, { fields, text: isKept ? text : undefined });
    }
}

/** Fields → the text that was put in last, and what the page made of it. */
const written = new WeakMap<Field, string>();
/** Whether two texts are one number, or differ only by the signs between letters and digits. */
function isAlike(a: string, b: string): boolean {
  if (a === b) return true;
  if (a && b && !Number.isNaN(+a) && !Number.isNaN(+b)) return +a === +b;
  const bare = (text: string) => text.toLowerCase().replace(/[\s.,:;/()'_-]/g, "");
  return !!bare(a) && bare(a) === bare(b);
}
const isSent = (form: HTMLFormElement, field: Field): boolean =>
  !is(field, ":disabled") && Array.from(fieldsOf(form)).includes(field);

const isWanted = (value: unknown, one: string): boolean =>
  Array.isArray(value) ? value.includes(one) : value === one || value === true;
/** Whether the fields of a parameter have a value: a text, as the page had it when it was set. */
function has(fields: Field[], value: unknown, text: string | undefined): boolean {
  // Buttons of one value may be there twice, for wide screens and narrow ones.
  if (fields[0]!.type === "radio")
    return fields.some((field) => isCheckable(field) && field.checked && field.value === value);
  return fields.every((field) => {
    if (isCheckable(field)) return field.checked === isWanted(value, field.value);
    // Two fields may write each other's numbers in their way.
    if (!(field instanceof HTMLSelectElement)) return field.value === text || (!!text && +field.value === +text);
    // Several options may have one value.
    if (!field.multiple) return field.value === value;
    return Array.from(field.options).every((one) => one.selected === isWanted(value, one.value));
  });
}

/** Puts a text into a field, by the browser's own setter. */
function put(field: HTMLInputElement | HTMLTextAreaElement, text: string): void {
  const { prototype } = field instanceof HTMLInputElement ? HTMLInputElement : HTMLTextAreaElement;
  Object.getOwnPropertyDescriptor(prototype, "value")!.set!.call(field, text);
}

/**
 * Reports whether a field keeps a value, by a try without events: a field for a date drops any
 * other text.
 */
function keeps(field: Field, value: unknown): boolean {
  if (isCheckable(field) || field instanceof HTMLSelectElement || value === "") return true;
  const before = field.value;
  put(field, `${value}`);
  const { badInput, typeMismatch } = field.validity; // WebKitGTK keeps any text as a date
  const kept = field.value && !badInput && !typeMismatch && isSame(field, `${value}`);
  put(field, before);
  return !!kept;
}

/** Whether a field has a text, and not one that the browser has made of it. */
function isSame(field: HTMLInputElement | HTMLTextAreaElement, text: string): boolean {
  const { type, value, maxLength } = field;
  if (maxLength >= 0 && text.length > maxLength) return false; // a person cannot type it
  if (/^(number|range)$/.test(type)) return +value === +text;
  if (type === "color") return value !== "#000000" || /^(#0{3}|#0{6}|black)$/i.test(text);
  return type === "textarea" || !/[\r\n]/.test(text);
}

/**
 * Sets a field as a person does: with its events, and not by the setters of libraries, which then
 * see a change. Returns its text before them.
 */
function set(field: Field, value: unknown): string {
  if (isCheckable(field)) {
    if (field.checked !== isWanted(value, field.value) && (field.type === "checkbox" || !field.checked)) field.click();
    return field.value;
  }
  if (field instanceof HTMLSelectElement) for (const one of field.options) one.selected = isWanted(value, one.value);
  else put(field, `${value}`);
  const { value: wrote } = field;
  for (const type of ["input", "change"]) field.dispatchEvent(new Event(type, { bubbles: true }));
  return wrote;
}

async function call(form: HTMLFormElement, input: Input, signal: AbortSignal | undefined): Promise<unknown> {
  const { checkValidity, requestSubmit } = HTMLFormElement.prototype;
  const mine: Call = { cancel() {} };
  const cancelled = new Promise<never>((_, reject) => {
    // By a signal of several calls, one that is over must not end the next.
    mine.cancel = (why) =>
      calls.get(form) === mine && calls.delete(form) && reject(new Refusal(`The call has ended: ${why}.`));
  });
  cancelled.catch(() => {}); // it is unused if the user has to submit
  try {
    if (calls.get(form)?.event) throw new Refusal("The form is busy: the page has not answered the call before.");
    fill(form, input);
    calls.set(form, mine);
    const button = Array.from(fieldsOf(form)).find((element) => is(element, submits)) as HTMLElement | undefined;
    if (attribute(form, "toolautosubmit") === null) {
      button?.focus();
      return "The form is filled in, and not submitted. The user has to look at it and submit it.";
    }
    signal?.addEventListener("abort", () => mine.cancel("the agent has cancelled it"));
    if (attribute(form, "novalidate") !== null || checkValidity.call(form)) requestSubmit.call(form, button);
    const wrong = Array.from(fieldsOf(form)).filter((field) => isField(field) && is(field, ":invalid")) as Field[];
    // The browser's message may quote the value.
    const why = wrong.map((field) =>
      isSecret(field)
        ? "The user has to correct a field that no agent may read."
        : `${field.name}: ${field.validationMessage}`,
    );
    if (!mine.event)
      throw new Refusal(`The form is filled in, and cannot be submitted. ${[...new Set(why)].join(" ")}`);
    if (!mine.event.defaultPrevented) return "The form is submitted.";
    return await Promise.race([mine.answer ?? "The form is submitted to a script, which does not answer.", cancelled]);
  } catch (cause) {
    if (cause instanceof Refusal) return { isError: true, content: [{ type: "text", text: cause.message }] };
    throw cause;
  } finally {
    if (calls.get(form) === mine && attribute(form, "toolautosubmit") !== null) calls.delete(form);
  }
}

/** Follows submissions and resets, and gives the page's scripts the two members of SubmitEvent. */
export function followForms(): void {
  const onsubmit = (event: SubmitEvent) => {
    const form = event.target as HTMLFormElement;
    const call = calls.get(form);
    if (!call || call.event || !event.isTrusted) return;
    call.event = event;
    submissions.set(event, call);
    if (attribute(form, "toolautosubmit") === null) calls.delete(form); // the next submission is the user's own
  };
  addEventListener("submit", onsubmit, true);
  addEventListener("reset", ({ target }) => calls.get(target as HTMLFormElement)?.cancel("the form was reset"), true);
  const members = {
    get agentInvoked(): boolean {
      return submissions.has(this as unknown as Event);
    },
    respondWith(this: unknown, answer: unknown): void {
      const call = submissions.get(this as Event);
      const wants = "respondWith needs a submission by an agent, and preventDefault().";
      if (!call?.event?.defaultPrevented) throw new DOMException(wants, "InvalidStateError");
      call.answer ??= Promise.resolve(answer);
    },
  };
  Object.defineProperties(SubmitEvent.prototype, Object.getOwnPropertyDescriptors(members));
}

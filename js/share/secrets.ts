/**
 * Which fields and elements hold secrets, which no agent may read: passwords, card numbers, codes,
 * what shows dots, and what a page marks as private. A field is secret by its type, now or before,
 * by its `autocomplete`, by words in its name and labels, or by its value.
 *
 * Elements may be of another document, so nothing here asks for their class.
 */

export const privately = "data-resource-private";

export type Field = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;

export const attribute = (element: Element, name: string) => Element.prototype.getAttribute.call(element, name);

/** Whether an element, or one around it, is marked as private. */
export const isPrivate = (element: Element): boolean =>
  Element.prototype.closest.call(element, `[${privately}]`) !== null;

/** Whether an element shows dots instead of its text, by a style or by a font of dots. */
export const hasDots = (element: Element, style = getComputedStyle(element)): boolean =>
  !/^(none)?$/.test(style.getPropertyValue("-webkit-text-security")) ||
  /text-security|dotsfont/i.test(style.fontFamily);

/**
 * Fields that have been passwords, and their names in their form, or in their tree if they had
 * none.
 */
const passwords = new WeakSet<Element>();
const called = new WeakMap<Node, Set<string>>();
/** Parents → their last password without any name. */
const nameless = new WeakMap<Node, Field>();
const parentOf = (field: Field): Node | null => Reflect.get(Node.prototype, "parentNode", field);
const rootOf = (of: Element): Document | ShadowRoot => Node.prototype.getRootNode.call(of) as Document;

/**
 * Remembers a password field, since it may show the password later, or another field in its place.
 */
export function remember(field: Field): void {
  passwords.add(field);
  const [parent, names] = [parentOf(field), namesOf(field)];
  if (!names.length && parent) nameless.set(parent, field);
  const owner = field.form ?? rootOf(field);
  called.set(owner, new Set([...(called.get(owner) ?? []), ...names]));
}

/** Whether a field is a former password, or has taken the place of one. */
function wasPassword(field: Field): boolean {
  const names = namesOf(field);
  const of = called.get(field.form ?? rootOf(field));
  const before = nameless.get(parentOf(field) ?? field);
  return (
    passwords.has(field) ||
    names.some((name) => of?.has(name)) ||
    (!names.length && !!before && parentOf(before) !== parentOf(field))
  );
}

/**
 * Secret values of `autocomplete`. Looked up as an attribute: Firefox's property does not know
 * one-time-code.
 */
const filledIn = /\b(cc-|one-time-code|(current|new)-password)/i;

/**
 * Words in names and labels of fields whose authors did not think of agents. Here camelCase and
 * snake_case are words.
 */
const words = new RegExp(
  "pass ?(word|phrase|code|wd)|\\b(pwd?|pin|cv[cv]2?|csc|otp|totp|otc|m?tan|[2m]fa|iban|ssn|tokens?|secrets?|credentials?|mnemonic)\\b|" +
    "passwor|kennwort|contrase|mot de passe|senha|wachtwoord|парол|密码|密碼|パスワード|비밀번호|" +
    "has[łl]o|heslo|lösenord|adgangskode|passord|salasana|jelszó|şifre|mật khẩu|kata sandi|كلمة (ال)?(مرور|سر)|סיסמ|รหัสผ่าน|पासवर्ड|" +
    "(card|\\bcc) ?(number|num|no|nr)\\b|kartennummer|one ?time|two factor|social security|sort code|routing number|" +
    "(security|verification|auth(entication|enticator)?|access|recovery|backup|confirmation|sms|login|digit) ?(code|answer|phrase)|" +
    "(bestätigungs|sicherheits)code|c[oó]d(e|igo) d[e'] ?(la )?(v[eé]rif|s[eé][cg]ur|confirm)|" +
    "seed phrase|(api|access|private|encryption|licen[cs]e) ?key",
  "i",
);

/** Whether something by this name is a secret, as a field or as a member of an object. */
export const isSecretName = (...names: string[]): boolean => words.test(asWords(names));

/** The same, where it is all of a field's name. In a longer one it may be a boarding pass, or an author. */
const alone = /^(((user|login|edit|db|smtp|new|old|confirm) )?pass ?\d?|auth|authori[sz]ation|bearer|jwt|csrf)$/i;

/**
 * Fields into which a person types what the words are about; a checkbox "Remember my password" is
 * none.
 */
const typed = /^(text|search|tel|url|email|number|month|textarea)$/;

/**
 * Whether agents may not read a field: because of its type, its `autocomplete`, a former type, its
 * mark, its dots, its name or its value.
 */
export const isSecret = (field: Field): boolean =>
  /^(password|hidden)$/.test(field.type) ||
  filledIn.test(attribute(field, "autocomplete") ?? "") ||
  (typed.test(field.type) && wasPassword(field)) ||
  isPrivate(field) ||
  hasDots(field) ||
  (typed.test(field.type) &&
    (isSecretName(...namesOf(field)) || isCalled(field, alone) || isCodeBox(field) || isAccount(field.value)));

/** All that names a field. */
function namesOf(field: Field): string[] {
  const names = ["name", "id", "aria-label", "placeholder", "title"].map((name) => attribute(field, name) ?? "");
  for (const { textContent } of [...(field.labels ?? []), ...labelsOf(field)])
    names.push(textContent!.slice(0, 200).trim());
  return names.filter(Boolean);
}

/**
 * Whether a field is for a one-time code: a box for one character, or digits that are called a code
 * and nothing else. Those of a country or a post office have another word.
 */
const isCodeBox = (field: Field): boolean =>
  attribute(field, "maxlength") === "1" ||
  (/^(numeric|number|tel)$/i.test(attribute(field, "inputmode") || field.type) && isCalled(field, /^code$/i));

/** Whether a whole name of a field, as words, is one of these. */
const isCalled = (field: Field, name: RegExp): boolean =>
  namesOf(field).some((one) => name.test(asWords([one]).trim()));

const asWords = (names: string[]): string =>
  names
    .join(" , ")
    .replace(/([a-z])(?=[A-Z])/g, "$1 ")
    .replace(/[\s_.[\]-]+/g, " ");

/** The elements that `aria-labelledby` names, in the tree of the element. */
export function labelsOf(element: Element): Element[] {
  const root = rootOf(element);
  const type = Reflect.get(Node.prototype, "nodeType", root); // a named element hides a document's own
  if (type !== 9 && type !== 11) return [];
  const { getElementById } = type === 9 ? Document.prototype : DocumentFragment.prototype;
  const ids = (attribute(element, "aria-labelledby") ?? "").split(/\s+/).filter(Boolean);
  return ids.slice(0, 5).flatMap((id) => getElementById.call(root as Document, id) ?? []);
}

/** Whether a value is a card's number, by its length and Luhn's check. */
function isCard(value: string): boolean {
  const digits = value.replace(/[\s.-]/g, "");
  if (!/^\d{13,19}$/.test(digits)) return false;
  const sum = [...digits].reverse().reduce((sum, digit, i) => {
    const n = +digit * (1 + (i % 2));
    return sum + (n > 9 ? n - 9 : n);
  }, 0);
  return sum % 10 === 0;
}

/** Whether a value is an IBAN, by its form and the check of ISO 7064. */
function isIban(value: string): boolean {
  const [, head, rest] = /^([A-Z]{2}\d\d)([A-Z\d]{11,30})$/i.exec(value.replace(/[\s.-]/g, "")) ?? [];
  return !!head && [...(rest! + head)].reduce((sum, one) => Number(`${sum}${parseInt(one, 36)}`) % 97, 0) === 1;
}

/** Whether a value is the number of a card or of an account. */
export const isAccount = (value: string): boolean => isCard(value) || isIban(value);

/** An address without the values of its parameters that are secret by their names. */
export const withoutSecrets = (address: string): string =>
  address.replace(
    /([?&#][^=?&#]{0,99}?(token|code|key|secret|pass|auth|session|sig|otp|jwt)[^=?&#]{0,99}=)[^&#]*/gi,
    "$1…",
  );

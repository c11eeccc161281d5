/**
 * What the web platform's idlharness.js checks, for partial interfaces such as ours: every member that the IDL names is
 * where Web IDL puts it, and behaves as generated bindings do. It walks the IDL; it knows no member by name.
 *
 * Bundled by wpt_test.go with webidl2 and the text of the IDL, and run on the harness in resources/.
 */
import {
  parse,
  type IDLRootType,
  type InterfaceType,
  type OperationMemberType,
  type AttributeMemberType,
} from "webidl2";

declare const idl: string;
declare function test(body: () => void, name: string): void;
declare function assert_equals(actual: unknown, expected: unknown, what?: string): void;
declare function assert_true(actual: unknown, what?: string): void;
declare function assert_throws_js(type: ErrorConstructor, f: () => void, what?: string): void;

const ast = parse(idl) as IDLRootType[];
const holders: Record<string, object> = {
  Document: document,
  Navigator: navigator,
  ModelContext: document.modelContext,
};

for (const node of ast) if (node.type === "interface") walk(node);

function walk(node: InterfaceType): void {
  const holder = holders[node.name]!;
  const { prototype } = (globalThis as never)[node.name] as { prototype: object };

  test(() => {
    assert_true(Object.prototype.isPrototypeOf.call(prototype, holder), "the object inherits from the prototype");
    const global = Object.getOwnPropertyDescriptor(globalThis, node.name)!;
    assert_equals(global.writable, true, "writable");
    assert_equals(global.enumerable, false, "enumerable");
    assert_equals(global.configurable, true, "configurable");
    assert_equals(global.value.name, node.name, "name");
    assert_equals(global.value.length, 0, "length");
    assert_equals(Object.getOwnPropertyDescriptor(prototype, Symbol.toStringTag)!.value, node.name, "@@toStringTag");
    assert_equals(Object.getOwnPropertyDescriptor(prototype, "constructor")!.value, global.value, "constructor");
  }, `${node.name}: the interface object and its prototype`);

  for (const member of node.members) {
    if (member.type === "operation") operation(node.name, prototype, holder, member);
    else if (member.type === "attribute") attribute(node.name, prototype, holder, member);
    else throw new Error(`no rule for a member of ${node.name}`);
  }
}

function operation(owner: string, prototype: object, holder: object, member: OperationMemberType): void {
  const name = member.name!;
  const required = member.arguments.filter((a) => !a.optional).length;
  const method = (holder as Record<string, () => void>)[name]!;
  test(() => {
    const own = Object.getOwnPropertyDescriptor(prototype, name)!;
    assert_true(!Object.hasOwn(holder, name), "not on the object itself");
    assert_equals(own.value, method, "value");
    assert_equals(own.writable, true, "writable");
    assert_equals(own.enumerable, true, "enumerable");
    assert_equals(own.configurable, true, "configurable");
    assert_equals(method.name, name, "name");
    assert_equals(method.length, required, "length");
    assert_equals("prototype" in method, false, "prototype");
    assert_throws_js(TypeError, () => Reflect.construct(method, []), "no constructor");
  }, `${owner}.${name}: its property`);

  test(() => {
    for (let given = 0; given < required; given++)
      assert_throws_js(TypeError, () => Reflect.apply(method, holder, Array(given).fill("")), `${given} arguments`);
    // The receiver is looked at before the arguments.
    let converted = false;
    const argument = new Proxy({}, { get: () => void (converted = true) });
    for (const receiver of [undefined, null, {}, window, prototype, Object.create(holder), new Proxy(holder, {})])
      assert_throws_js(TypeError, () => Reflect.apply(method, receiver, [argument]), "a receiver of another kind");
    assert_equals(converted, false, "the argument was looked at");
  }, `${owner}.${name}: its receiver and the number of arguments`);

  member.arguments.forEach((argument, index) => {
    const dictionary = ast.find((d) => d.type === "dictionary" && d.name === argument.idlType.idlType);
    if (dictionary?.type !== "dictionary") return;
    const { members } = dictionary;
    test(
      () => {
        const read: string[] = [];
        const stop = new RangeError("stop");
        const fine: Record<string, unknown> = { read: () => "", uri: `${location.origin}/idl`, name: "n" };
        const run = (value: unknown) => Reflect.apply(method, holder, index ? [fine, value] : [value]);
        const sorted = members.map((m) => m.name).sort();
        // Each member in turn throws: those before it have been read by then, each once, in the order of their names.
        sorted.forEach((last, i) => {
          read.length = 0;
          const value = new Proxy(
            {},
            {
              get: (_, key) => {
                read.push(String(key));
                if (key === last) throw stop;
                return fine[String(key)];
              },
            },
          );
          let thrown: unknown;
          try {
            run(value);
          } catch (error) {
            thrown = error;
          }
          assert_equals(thrown, stop, `what the getter of ${last} throws`);
          assert_equals(read.join(), sorted.slice(0, i + 1).join(), `read up to ${last}`);
        });
        for (const wrong of [5, "text", true, Symbol()]) assert_throws_js(TypeError, () => run(wrong), "no object");
        for (const { name: missing } of members.filter((m) => m.required))
          assert_throws_js(TypeError, () => run({ ...fine, [missing]: undefined }), `without ${missing}`);
      },
      `${owner}.${name}: ${dictionary.name} as argument ${index + 1}`,
    );
  });
}

function attribute(owner: string, prototype: object, holder: object, member: AttributeMemberType): void {
  const { name } = member;
  test(() => {
    const own = Object.getOwnPropertyDescriptor(prototype, name)!;
    assert_true(!Object.hasOwn(holder, name), "not on the object itself");
    assert_equals(typeof own.get, "function", "getter");
    assert_equals(own.set, undefined, "setter");
    assert_equals(own.enumerable, true, "enumerable");
    assert_equals(own.configurable, true, "configurable");
    assert_equals(own.get!.name, `get ${name}`, "name");
    assert_equals(own.get!.length, 0, "length");
    assert_equals("prototype" in own.get!, false, "prototype");
    for (const receiver of [undefined, null, {}, prototype, new Proxy(holder, {})])
      if (receiver != null || owner !== "Window")
        assert_throws_js(TypeError, () => Reflect.apply(own.get!, receiver, []), "a receiver of another kind");
    if (member.extAttrs.some((a) => a.name === "SameObject"))
      assert_equals(Reflect.apply(own.get!, holder, []), Reflect.apply(own.get!, holder, []), "the same object");
  }, `${owner}.${name}`);
}

/** What idlharness.ts uses of webidl2, which has no types of its own. */
declare module "webidl2" {
  interface Type {
    idlType: unknown;
  }
  export interface OperationMemberType {
    type: "operation";
    name: string | null;
    arguments: { optional: boolean; idlType: Type }[];
  }
  export interface AttributeMemberType {
    type: "attribute";
    name: string;
    extAttrs: { name: string }[];
  }
  export interface InterfaceType {
    type: "interface";
    name: string;
    members: (OperationMemberType | AttributeMemberType)[];
  }
  interface Field {
    name: string;
    required: boolean;
  }
  export type IDLRootType =
    | InterfaceType
    | { type: "dictionary"; name: string; members: Field[] }
    | { type: "enum" | "callback"; name: string };
  export function parse(text: string): IDLRootType[];
}

/**
 * Own references to the intrinsics that turn bytes into base64, for contents.ts. See intrinsics.ts.
 */
import { getter, uncurry } from "../early/basics.ts";

export const { isArray } = Array;
export const { isView } = ArrayBuffer;
export const Bytes = Uint8Array;
export const bufferLength = getter(ArrayBuffer.prototype, "byteLength");
export const blobSize = getter(Blob.prototype, "size");
export const blobBytes = uncurry(Blob.prototype.arrayBuffer);
/** Chromium has it since 140. */
export const toBase64 = (Bytes.prototype as { toBase64?(): string }).toBase64;
export const encodeLatin1 = btoa;
export const { fromCharCode } = String;

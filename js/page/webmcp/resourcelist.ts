/**
 * The answers of resources_list, page by page. A cursor is the place of the last entry that was
 * listed. Places are given once, in the order of registration, so that cursors stay valid while
 * other entries come and go.
 */
import { parse, SafeMap } from "../common/intrinsics.ts";
import { refuse } from "../common/refusal.ts";
import { isTemplate } from "../resources/revisions.ts";
import type { Entry, shared as Shared } from "../early/shared.ts";

const pageSize = 200;

/** A page of the list has at most `maxSize` characters. */
export function resourceList({ entries }: typeof Shared, maxSize: number): (cursor: unknown) => object {
  let places = new SafeMap<Entry, number>();
  let last = 0;

  return (cursor) => {
    const from = cursor === undefined ? 0 : typeof cursor === "string" ? +cursor : -1;
    if (!(from >= 0 && from <= last && from % 1 === 0)) refuse("'cursor' is not one of resources_list");
    const resources: object[] = [];
    const resourceTemplates: object[] = [];
    let count = 0;
    let size = 0;
    let end = 0;
    let more = false as boolean;
    const present = new SafeMap<Entry, number>();
    entries.forEach((entry, key) => {
      const place = places.get(entry) ?? ++last;
      present.set(entry, place);
      if (more || place <= from) return;
      size += entry.descriptor.length;
      more = count === pageSize || (count > 0 && size > maxSize);
      if (more) return;
      count++;
      end = place;
      const { uri, uriSchema, contentSchema, minUpdateInterval: _, ...rest } = parse(entry.descriptor);
      if (contentSchema) rest._meta = { "pagewire/schema": contentSchema };
      if (isTemplate(key)) resourceTemplates[resourceTemplates.length] = { uriTemplate: uri, ...rest };
      else resources[resources.length] = { uri, ...rest, ...(uriSchema && { uriSchema }) };
    });
    places = present;
    return { resources, resourceTemplates, ...(more && { nextCursor: `${end}` }) };
  };
}

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

export interface Props<T> {
  id: string;
  label: string;
  items: readonly T[];
  // height of every row in px. It is the same for all, so that the visible rows are cheap to
  // compute.
  height: number;
  keyOf: (item: T) => string | number;
  selected: (item: T) => boolean;
  select: (item: T) => void;
  children: (item: T) => ComponentChildren;
  multiple?: boolean;
  // follow scrolls to new items, unless the user has scrolled away from the end.
  follow?: boolean;
  empty: string;
}

// Rows is a list of any length. Only its visible rows are in the document. It is a listbox: the
// arrow keys, Home, End and the page keys move, Enter and Space select.
export function Rows<T>(props: Props<T>) {
  const { id, label, items, height, keyOf, selected, select, children, multiple, follow, empty } = props;
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 400 });
  // The active row is kept by its key: the list changes under it.
  const [active, setActive] = useState<string | number>();
  const atEnd = useRef(true);

  useEffect(() => {
    const element = box.current!;
    const look = () => {
      atEnd.current = element.scrollTop + element.clientHeight >= element.scrollHeight - height;
      setView({ top: element.scrollTop, height: element.clientHeight });
    };
    look();
    element.addEventListener("scroll", look, { passive: true });
    const resized = new ResizeObserver(look);
    resized.observe(element);
    return () => {
      element.removeEventListener("scroll", look);
      resized.disconnect();
    };
  }, [height]);

  useLayoutEffect(() => {
    if (follow && atEnd.current) box.current!.scrollTop = items.length * height;
  });

  const first = Math.max(0, Math.min(items.length, Math.floor(view.top / height) - 5));
  const last = Math.min(items.length, Math.ceil((view.top + view.height) / height) + 5);
  const at = active === undefined ? -1 : items.findIndex((item) => keyOf(item) === active);

  const move = (to: number) => {
    const next = Math.max(0, Math.min(items.length - 1, to));
    const item = items[next];
    if (item === undefined) return;
    setActive(keyOf(item));
    const element = box.current!;
    if (next * height < element.scrollTop) element.scrollTop = next * height;
    else if ((next + 1) * height > element.scrollTop + element.clientHeight)
      element.scrollTop = (next + 1) * height - element.clientHeight;
  };

  const key = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor(view.height / height) - 1);
    const end = items.length - 1;
    const up = at < 0 ? end : at - 1;
    const places = { ArrowDown: at + 1, ArrowUp: up, PageDown: at + page, PageUp: at - page, Home: 0, End: end };
    const to = places[event.key as keyof typeof places] as number | undefined;
    if (to !== undefined) move(to);
    else if (event.key !== "Enter" && event.key !== " ") return;
    else if (items[at] !== undefined) select(items[at]);
    event.preventDefault();
  };

  const shown = at >= first && at < last;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it has a role: a listbox without options is none to axe
    // biome-ignore lint/a11y/useAriaPropsSupportedByRole: both roles have a label
    <div
      ref={box}
      id={id}
      class="rows"
      role={items.length ? "listbox" : "group"}
      aria-label={label}
      aria-multiselectable={items.length ? (multiple ?? false) : undefined}
      aria-activedescendant={shown ? `${id}-${at}` : undefined}
      tabIndex={0}
      onKeyDown={key}
    >
      {items.length === 0 && <p class="empty">{empty}</p>}
      <div role="presentation" style={{ height: `${items.length * height}px`, position: "relative" }}>
        {items.slice(first, last).map((item, i) => (
          // biome-ignore lint/a11y/useFocusableInteractive: the listbox has the focus, and says which option is active
          // biome-ignore lint/a11y/useKeyWithClickEvents: the listbox hears the keys
          <div
            key={keyOf(item)}
            id={`${id}-${first + i}`}
            class={first + i === at ? "row active" : "row"}
            role="option"
            aria-selected={selected(item)}
            aria-setsize={items.length}
            aria-posinset={first + i + 1}
            style={{ top: `${(first + i) * height}px`, height: `${height}px` }}
            onClick={() => {
              setActive(keyOf(item));
              select(item);
            }}
          >
            {children(item)}
          </div>
        ))}
      </div>
    </div>
  );
}

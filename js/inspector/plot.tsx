import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { type Series, seconds } from "./feed.ts";
import { theme } from "../parts/theme.ts";

interface Props {
  label: string;
  series: Series;
  height: number;
  // format puts the newest value into words, for screen readers.
  format: (now: number) => string;
}

// Plot draws the last two minutes of a series, as small bars.
export function Plot({ label, series, height, format }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const is = theme();

  // biome-ignore lint/correctness/useExhaustiveDependencies: the colours that are drawn are the theme's
  useEffect(() => {
    const element = box.current!;
    const { color } = getComputedStyle(element);
    const made = new uPlot(
      {
        width: Math.max(element.clientWidth, 10),
        height,
        padding: [2, 0, 0, 0],
        legend: { show: false },
        cursor: { show: false },
        axes: [{ show: false }, { show: false }],
        scales: { x: { time: false }, y: { range: (_, __, max) => [0, Math.max(1, max)] } },
        series: [
          {},
          {
            stroke: color,
            fill: `color-mix(in srgb, ${color} 33%, transparent)`,
            width: 1,
            points: { show: false },
            paths: uPlot.paths.bars!({ size: [0.8, 8] }),
          },
        ],
      },
      [series.x, series.y],
      element,
    );
    plot.current = made;
    const resized = new ResizeObserver(() => made.setSize({ width: Math.max(element.clientWidth, 10), height }));
    resized.observe(element);
    return () => {
      resized.disconnect();
      made.destroy();
    };
  }, [series, height, is]);

  useEffect(() => plot.current?.setData([series.x, series.y]), [series.x, series.y]);

  const now = format(series.now);
  return (
    <figure class="plot">
      <figcaption>
        <span>{label}</span> <b>{now}</b>
      </figcaption>
      <div ref={box} role="img" aria-label={`${label}, the last ${seconds} seconds; now ${now}`} />
    </figure>
  );
}

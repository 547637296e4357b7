// Shows an answer as a chart. The chart is an image with a label, because the grid below contains the same numbers.
import { useEffect, useRef } from 'react'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { useTheme } from '../../frame/theme.ts'
import type { ChartShape } from './chart-shape.ts'

const HEIGHT = 320
/** The colours of the lines, which are easy to tell apart in both themes. The legend shows the name of each line. */
const LINES = ['--accent', '--ok', '--warn', '--bad', '--ink-2', '--control']

export function Chart({ shape, label }: { readonly shape: ChartShape; readonly label: string }) {
  const place = useRef<HTMLDivElement>(null)
  const theme = useTheme()
  useEffect(() => {
    const element = place.current
    if (element === null) return undefined
    const plot = new uPlot(optionsOf(shape, element), dataOf(shape), element)
    const resized = new ResizeObserver(() => plot.setSize({ width: widthOf(element), height: HEIGHT }))
    resized.observe(element)
    return () => {
      resized.disconnect()
      plot.destroy()
    }
  }, [shape, theme])
  return <div ref={place} className="chart" role="img" aria-label={label} />
}

const dataOf = ({ xs, series }: ChartShape): uPlot.AlignedData => [[...xs], ...series.map(({ values }) => [...values])]

function optionsOf(shape: ChartShape, element: HTMLElement): uPlot.Options {
  const colour = (name: string) => colourOf(element, name)
  const isLabels = shape.kind === 'label'
  const axis = { stroke: colour('--ink-3'), grid: { stroke: colour('--hairline'), width: 1 }, ticks: { show: false } }
  const bars = uPlot.paths.bars?.({ size: [0.6, 48], radius: 0.1 })
  return {
    width: widthOf(element),
    height: HEIGHT,
    scales: { x: { time: shape.kind === 'time', ...(isLabels ? { range: [-0.5, shape.xs.length - 0.5] } : {}) } },
    axes: [
      {
        ...axis,
        grid: { show: false },
        ...(isLabels ? { values: (_plot: uPlot, splits: number[]) => splits.map((n) => labelAt(shape, n)) } : {}),
      },
      { ...axis, size: 64 },
    ],
    series: [
      { label: shape.x, ...(isLabels ? { value: (_plot: uPlot, n: number) => labelAt(shape, n) } : {}) },
      ...shape.series.map(({ name }, n) => {
        const stroke = colour(LINES[n % LINES.length] ?? '--accent')
        return {
          label: name,
          stroke,
          width: 2,
          points: { show: shape.xs.length < 60 },
          ...(isLabels && bars !== undefined ? { paths: bars, fill: stroke, points: { show: false } } : {}),
        }
      }),
    ],
  }
}

function widthOf(element: HTMLElement): number {
  const { paddingLeft, paddingRight } = getComputedStyle(element)
  return element.clientWidth - Number.parseFloat(paddingLeft) - Number.parseFloat(paddingRight)
}

const CUT = 14

function labelAt({ labels }: ChartShape, n: number | null): string {
  const label = n === null || !Number.isInteger(n) ? '' : (labels[n] ?? '')
  return label.length > CUT ? `${label.slice(0, CUT)}…` : label
}

/** Returns a computed colour, because a canvas does not support CSS variables or light-dark(). */
function colourOf(element: HTMLElement, name: string): string {
  const probe = document.createElement('span')
  probe.style.color = `var(${name})`
  element.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}

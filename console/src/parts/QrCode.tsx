// A QR code as SVG shapes. It is dark on light in both themes, because many cameras cannot read light on dark.
import { encode } from 'uqr'

export function QrCode({ label, children }: { readonly label: string; readonly children: string }) {
  const { data, size } = encode(children, { border: 3 })
  const squares = data.flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : '')))
  return (
    <svg className="qr" role="img" aria-label={label} viewBox={`0 0 ${size} ${size}`} shapeRendering="crispEdges">
      <path fill="#fff" d={`M0 0h${size}v${size}h-${size}z`} />
      <path fill="#000" d={squares.join('')} />
    </svg>
  )
}

// Shows texts from people and databases. These texts are never markup, and their text direction does not affect the
// page.
import { useState } from 'react'

const LONG = 400

export const Name = ({ children }: { readonly children: string }) => <bdi>{children}</bdi>

/** Shows a text of any length. Cuts a long text until the person asks for all of it. */
export function LongText({ children }: { readonly children: string }) {
  const [whole, showWhole] = useState(false)
  if (children.length <= LONG || whole) return <bdi>{children}</bdi>
  return (
    <>
      <bdi>{children.slice(0, LONG)}…</bdi>{' '}
      <button type="button" className="button small" onClick={() => showWhole(true)}>
        Show all
      </button>
    </>
  )
}

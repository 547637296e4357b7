// A button that copies a text, and says whether the browser allowed the copy.
import { Check, Copy as CopyIcon } from 'lucide-react'
import { useEffect, useState } from 'react'
import { Button } from './Button.tsx'
import { say } from './StatusMessages.tsx'

const SHOWN_MS = 2_000

interface CopyProps {
  /** The text, or a function that creates a long text when the person copies it. */
  readonly text: string | (() => string)
  /** The label of the button. Without a label, only the icon is shown. */
  readonly children?: string
  /** The accessible name of an icon button. */
  readonly label?: string
  readonly look?: 'primary' | 'quiet'
  readonly small?: boolean
}

export function CopyButton({ text, children, label = 'Copy', look, small = false }: CopyProps) {
  const [copied, setCopied] = useState(false)
  useEffect(() => {
    if (!copied) return undefined
    const timer = setTimeout(() => setCopied(false), SHOWN_MS)
    return () => clearTimeout(timer)
  }, [copied])
  const copy = async () => {
    if (await copyText(typeof text === 'string' ? text : text())) {
      setCopied(true)
      say('Copied')
    } else {
      say('The browser does not allow copying here. Select the text instead.')
    }
  }
  const icon = copied ? Check : CopyIcon
  if (children === undefined)
    return <Button look="quiet" small className="square" icon={icon} aria-label={label} title={label} onClick={copy} />
  return (
    <Button small={small} icon={icon} onClick={copy} {...(look === undefined ? {} : { look })}>
      {children}
    </Button>
  )
}

/**
 * Copies a text. Browsers provide the clipboard only on loopback and over HTTPS, so there is a second way. Returns
 * false if both ways fail.
 */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return copySelected(text)
  }
}

function copySelected(text: string): boolean {
  const area = document.createElement('textarea')
  area.value = text
  area.className = 'hidden-words'
  const before = document.activeElement
  ;(before?.parentElement ?? document.body).append(area)
  area.select()
  const copied = document.execCommand('copy')
  area.remove()
  if (before instanceof HTMLElement) before.focus()
  return copied
}

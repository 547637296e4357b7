import { CopyButton } from './Copy.tsx'

export function CodeBlock({ label, children }: { readonly label: string; readonly children: string }) {
  return (
    <div className="code">
      <pre tabIndex={0} role="group" aria-label={label}>
        <code>{children}</code>
      </pre>
      <CopyButton text={children} label={`Copy ${label}`} />
    </div>
  )
}

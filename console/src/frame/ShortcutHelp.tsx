import { Fragment } from 'react'
import { Dialog } from '../parts/Dialog.tsx'
import { MOD } from './keyboard-shortcuts.ts'

const KEYS: readonly (readonly [string, readonly string[]])[] = [
  ['Search or jump to', [MOD, 'K']],
  ['Filter of the page', ['/']],
  ['Home', ['G', 'H']],
  ['Datasources', ['G', 'D']],
  ['Playground', ['G', 'P']],
  ['Activity', ['G', 'A']],
  ['Members', ['G', 'M']],
  ['Settings', ['G', 'S']],
  ['API keys', ['G', 'K']],
  ['Run the query', [MOD, '↵']],
  ['Review changes', [MOD, 'S']],
  ['Close', ['Esc']],
  ['These keys', ['?']],
]

export function ShortcutHelp({ open, onClose }: { readonly open: boolean; readonly onClose: () => void }) {
  return (
    <Dialog
      open={open}
      onClose={onClose}
      title="Keys"
      description="The keys G, / and ? can be switched off in your profile."
    >
      <dl className="keys">
        {KEYS.map(([what, keys]) => (
          <Fragment key={what}>
            <dt>{what}</dt>
            <dd>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dd>
          </Fragment>
        ))}
      </dl>
    </Dialog>
  )
}

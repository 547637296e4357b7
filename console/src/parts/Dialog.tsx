// Dialogs. The focus moves into the dialog, stays there, and returns to the element that opened the dialog.
import { AlertDialog as BaseAlert } from '@base-ui/react/alert-dialog'
import { Dialog as Base } from '@base-ui/react/dialog'
import type { ReactNode, RefObject } from 'react'
import { classes } from './class-names.ts'

interface DialogProps {
  readonly open: boolean
  readonly onClose: () => void
  readonly title: ReactNode
  readonly description?: ReactNode
  /** The buttons. The last button is the primary action. */
  readonly foot?: ReactNode
  readonly wide?: boolean
  /** If set, Escape and a click outside do not close the dialog. */
  readonly stays?: boolean
  readonly initialFocus?: RefObject<HTMLElement | null>
  /** Returns the element that gets the focus when the dialog closes, or true for the element that opened the dialog. */
  readonly finalFocus?: () => HTMLElement | true
  readonly children?: ReactNode
}

interface Change {
  readonly reason: string
  readonly cancel: () => void
}

function closing(stays: boolean, onClose: () => void) {
  return (next: boolean, { reason, cancel }: Change) => {
    if (stays && reason === 'escape-key') return cancel()
    if (!next) onClose()
  }
}

export function Dialog({
  open,
  onClose,
  stays = false,
  wide = false,
  initialFocus,
  finalFocus,
  ...parts
}: DialogProps) {
  return (
    <Base.Root open={open} disablePointerDismissal={stays} onOpenChange={closing(stays, onClose)}>
      <Base.Portal>
        <Base.Backdrop className="backdrop" />
        <Base.Viewport className="dialog-place">
          <Base.Popup className={classes('dialog', wide && 'wide')} initialFocus={initialFocus} finalFocus={finalFocus}>
            <Inside {...parts} Title={Base.Title} Description={Base.Description} />
          </Base.Popup>
        </Base.Viewport>
      </Base.Portal>
    </Base.Root>
  )
}

/**
 * A dialog for a question that must be answered first, for example before an action that cannot be undone. A click
 * outside does not close it. It is shown above all other dialogs.
 */
export function AlertDialog({
  open,
  onClose,
  stays = false,
  wide = false,
  initialFocus,
  finalFocus,
  ...parts
}: DialogProps) {
  return (
    <BaseAlert.Root open={open} onOpenChange={closing(stays, onClose)}>
      <BaseAlert.Portal>
        <BaseAlert.Backdrop className="backdrop over" />
        <BaseAlert.Viewport className="dialog-place over">
          <BaseAlert.Popup
            className={classes('dialog', wide && 'wide')}
            initialFocus={initialFocus}
            finalFocus={finalFocus}
          >
            <Inside {...parts} Title={BaseAlert.Title} Description={BaseAlert.Description} />
          </BaseAlert.Popup>
        </BaseAlert.Viewport>
      </BaseAlert.Portal>
    </BaseAlert.Root>
  )
}

interface InsideProps extends Pick<DialogProps, 'title' | 'description' | 'foot' | 'children'> {
  readonly Title: typeof Base.Title
  readonly Description: typeof Base.Description
}

function Inside({ title, description, foot, children, Title, Description }: InsideProps) {
  return (
    <>
      <div className="dialog-head">
        <Title>{title}</Title>
        {description !== undefined && <Description>{description}</Description>}
      </div>
      <div className="dialog-body">{children}</div>
      {foot !== undefined && <div className="dialog-foot">{foot}</div>}
    </>
  )
}

// A button that opens a list of actions or places.
import { Menu as Base } from '@base-ui/react/menu'
import type { LucideIcon } from 'lucide-react'
import { MoreHorizontal } from 'lucide-react'
import type { ReactElement, ReactNode } from 'react'
import { classes } from './class-names.ts'
import { Icon } from './Icon.tsx'
import { landmark } from './menu-container.ts'

export function Menu({
  trigger,
  children,
  side = 'bottom',
  align = 'start',
}: {
  readonly trigger: ReactElement
  readonly children: ReactNode
  readonly side?: 'top' | 'bottom'
  readonly align?: 'start' | 'end'
}) {
  return (
    <Base.Root>
      <Base.Trigger render={trigger} />
      <Base.Portal container={landmark}>
        <Base.Positioner className="positioner" side={side} align={align} sideOffset={4}>
          <Base.Popup className="popup">{children}</Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  )
}

/** The three-dots menu at the end of a row. */
export function RowMenu({ label, children }: { readonly label: string; readonly children: ReactNode }) {
  return (
    <Menu
      align="end"
      trigger={
        <button type="button" className="button quiet square small" aria-label={label}>
          <Icon of={MoreHorizontal} />
        </button>
      }
    >
      {children}
    </Menu>
  )
}

interface ItemProps {
  readonly icon?: LucideIcon
  readonly danger?: boolean
  readonly disabled?: boolean
  readonly end?: ReactNode
  readonly onSelect?: () => void
  /** The link element, if the item is a link. */
  readonly render?: ReactElement
  readonly children: ReactNode
}

export function MenuItem({ icon, danger = false, disabled = false, end, onSelect, render, children }: ItemProps) {
  const shared = {
    className: classes('item', danger && 'danger'),
    disabled,
    ...(render === undefined ? {} : { render }),
  }
  return (
    <Base.Item {...shared} onClick={onSelect}>
      {icon !== undefined && <Icon of={icon} />}
      {children}
      {end !== undefined && <span className="item-end">{end}</span>}
    </Base.Item>
  )
}

export const MenuLine = () => <Base.Separator render={<hr />} />

/** The menu items of a setting with several choices. The current choice is marked. */
export function MenuChoice<V extends string>({
  label,
  value,
  options,
  onChange,
}: {
  readonly label: string
  readonly value: V
  readonly options: readonly { readonly value: V; readonly label: string; readonly icon?: LucideIcon }[]
  readonly onChange: (value: V) => void
}) {
  return (
    <Base.Group>
      <Base.GroupLabel className="popup-label">{label}</Base.GroupLabel>
      <Base.RadioGroup value={value} onValueChange={(next: V) => onChange(next)}>
        {options.map((option) => (
          <Base.RadioItem key={option.value} value={option.value} className="item" closeOnClick>
            {option.icon !== undefined && <Icon of={option.icon} />}
            {option.label}
            <Base.RadioItemIndicator className="item-end">✓</Base.RadioItemIndicator>
          </Base.RadioItem>
        ))}
      </Base.RadioGroup>
    </Base.Group>
  )
}

// Tabs: panels of one page, or links between pages with a common header.
import { Tabs as Base } from '@base-ui/react/tabs'
import { Link, type LinkProps } from '@tanstack/react-router'
import type { ReactNode } from 'react'

interface TabOf<V extends string> {
  readonly value: V
  readonly label: string
  readonly end?: ReactNode
}

interface TabsProps<V extends string> {
  readonly label: string
  readonly tabs: readonly TabOf<V>[]
  readonly value: V
  readonly onChange: (value: V) => void
  readonly children: ReactNode
}

export function Tabs<V extends string>({ label, tabs, value, onChange, children }: TabsProps<V>) {
  return (
    <Base.Root className="stack" value={value} onValueChange={(next: V) => onChange(next)}>
      <Base.List className="tabs" aria-label={label} activateOnFocus>
        {tabs.map((tab) => (
          <Base.Tab key={tab.value} value={tab.value} className="tab">
            {tab.label}
            {tab.end}
          </Base.Tab>
        ))}
      </Base.List>
      <Base.Panel value={value} className="stack">
        {children}
      </Base.Panel>
    </Base.Root>
  )
}

export interface LinkTab<V extends string> extends TabOf<V> {
  readonly link: LinkProps
}

/** Shows tabs that are links between pages. `value` is the tab of the current page. */
export function LinkTabs<V extends string>({
  label,
  tabs,
  value,
  children,
}: Omit<TabsProps<V>, 'onChange' | 'tabs'> & { readonly tabs: readonly LinkTab<V>[] }) {
  return (
    <Base.Root className="stack" value={value}>
      <Base.List className="tabs" aria-label={label}>
        {tabs.map((tab) => (
          <Base.Tab
            key={tab.value}
            value={tab.value}
            className="tab"
            nativeButton={false}
            render={<Link {...tab.link} />}
          >
            {tab.label}
            {tab.end}
          </Base.Tab>
        ))}
      </Base.List>
      <Base.Panel value={value} className="stack">
        {children}
      </Base.Panel>
    </Base.Root>
  )
}

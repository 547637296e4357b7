// Changes the theme: light, dark, or the system's. theme.js applies the theme before the first paint.
import { remember, remembered, useRemembered } from '../api/browser-settings.ts'

export type Theme = 'system' | 'light' | 'dark'

const themeOf = (text: string | null): Theme => (text === 'light' || text === 'dark' ? text : 'system')

export function chooseTheme(theme: Theme): void {
  remember('theme', theme)
  applyTheme()
}

function applyTheme(): void {
  const theme = themeOf(remembered('theme'))
  if (theme === 'system') delete document.documentElement.dataset['theme']
  else document.documentElement.dataset['theme'] = theme
}

export const useTheme = () => themeOf(useRemembered('theme'))

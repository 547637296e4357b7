/** Saves the content. In the name, characters other than letters, digits, `.`, `_` and `-` become hyphens. */
export function saveFile(name: string, content: Blob | string, type = 'text/plain'): void {
  const blob = typeof content === 'string' ? new Blob([content], { type: `${type};charset=utf-8` }) : content
  const url = URL.createObjectURL(blob)
  const link = document.createElement('a')
  link.href = url
  link.download = name.replace(/[^\p{L}\p{N}._-]+/gu, '-')
  link.click()
  URL.revokeObjectURL(url)
}

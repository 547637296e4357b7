// The pages of mailed links, and the consent page of OAuth. The URL of a page may contain a token, so the page sends no
// referrer. Its content security policy allows only this script and this style, by hash, and no frames.
import { hash } from 'node:crypto'

interface More {
  readonly style?: string
  readonly status?: number
}

/** `form` is HTML, so the caller must escape the texts in it. */
export function page(title: string, form: string, script: string, { style = '', status = 200 }: More = {}): Response {
  const hashOf = (text: string) => `'sha256-${hash('sha256', text, 'base64')}'`
  const [scripts, styles] = [hashOf(script), style === '' ? "'none'" : hashOf(style)]
  const html = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title>${style === '' ? '' : `<style>${style}</style>`}</head><body><main>
${form}
<output></output>
</main>
<script>${script}</script>
</body></html>
`
  return new Response(html, {
    status,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'referrer-policy': 'no-referrer',
      'x-frame-options': 'DENY',
      'content-security-policy': `default-src 'none'; script-src ${scripts}; style-src ${styles}; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    },
  })
}

/** `say` shows a sentence. `post` sends JSON, and throws an error with the sentence of a refusal. */
export const TELLING_SCRIPT = `
const say = (text) => { document.querySelector('output').textContent = text }
const post = async (path, body) => {
  const answer = await fetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const data = await answer.json()
  if (!answer.ok) throw new Error(data.error)
  return data
}`

/** Removes the token from the URL, so that it is not in the browser's history. */
export const COMMON_SCRIPT = `${TELLING_SCRIPT}
const params = new URLSearchParams(location.search)
history.replaceState(null, '', location.pathname)
const token = params.get('token')
const form = document.querySelector('form')
`

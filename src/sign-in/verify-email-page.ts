// The page of a verification link. It asks for the password of the sign-up. Otherwise a mail scanner, or a click of the
// address's owner, would verify an account that a stranger created.
import { PASSWORD } from '../contract/sign-in-routes.ts'
import { COMMON_SCRIPT, page } from './html-page.ts'

const FORM = `<form>
<p>Verify your e-mail address with the password that you chose when you signed up.</p>
<p><label>Password <input name="password" type="password" autocomplete="current-password" required maxlength="${PASSWORD.max}"></label></p>
<p><button>Verify</button></p>
<p>You did not sign up? Then close this page. Somebody else used your address, but cannot verify it without you.</p>
</form>`

const SCRIPT = `${COMMON_SCRIPT}
const callbackURL = params.get('callbackURL')
form.addEventListener('submit', async (event) => {
  event.preventDefault()
  try {
    const body = { token, password: form.password.value, ...(callbackURL === null ? {} : { callbackURL }) }
    const data = await post('/auth/verify-email', body)
    form.hidden = true
    say('The address is verified. Sign in now.')
    if (data.callbackURL !== null) location.assign(data.callbackURL)
  } catch (error) {
    say(error.message)
  }
})
`

export const verifyPage = (): Response => page('Verify your address', FORM, SCRIPT)

// The values of a form's text fields, and a setter for each field.
import { useState, type ChangeEvent, type FormEvent } from 'react'

export function useForm<F extends Record<string, string>>(initial: F) {
  const [form, setForm] = useState(initial)
  const field = (name: keyof F & string) => ({
    value: form[name] ?? '',
    onChange: (event: ChangeEvent<HTMLInputElement | HTMLTextAreaElement>) => {
      const { value } = event.target
      setForm((before) => ({ ...before, [name]: value }))
    },
  })
  return { form, field, setForm }
}

/** Returns a handler for `onSubmit` that keeps the browser on the page. */
export const submitting = (run: () => void) => (event: FormEvent) => {
  event.preventDefault()
  run()
}

// The logo: two panes of a display window that meet in a V.
export function Mark() {
  return (
    <svg className="mark" viewBox="0 0 32 32" aria-hidden>
      <rect width="32" height="32" rx="8" fill="#3346c7" />
      <path d="M5.5 8.5h8.2L19 23.5h-5.6z" fill="#fff" />
      <path d="M18.3 8.5h8.2L19 23.5l-2.6-7.4z" fill="#a9b6ff" />
    </svg>
  )
}

// sprite.js: every picture of the product, put into the document once, before the first one is used.
// Icons are 16 × 16 with a 1.5 px stroke; colour and stroke come from the element that uses them.
import { createPolicy } from "./trusted-types.js";

const SPRITE = `<svg xmlns="http://www.w3.org/2000/svg" width="0" height="0" aria-hidden="true">
  <!-- Icons: 16 × 16, 1.5 px stroke, coloured by the element that uses them. -->
  <symbol id="i-brand" viewBox="0 0 18 18">
    <rect x=".75" y=".75" width="16.5" height="16.5" rx="4.25" fill="none" stroke-width="1.5"/>
    <rect x="9" y="4" width="4.5" height="10" rx="1.2" fill="currentColor" stroke="none"/>
    <path d="M4 9h3.2" stroke-width="1.6" stroke-linecap="round" fill="none"/>
  </symbol>
  <symbol id="i-search" viewBox="0 0 16 16"><circle cx="7" cy="7" r="4.25"/><path d="m10.2 10.2 3.3 3.3"/></symbol>
  <symbol id="i-plus" viewBox="0 0 16 16"><path d="M8 3v10M3 8h10"/></symbol>
  <symbol id="i-close" viewBox="0 0 16 16"><path d="m4 4 8 8M12 4l-8 8"/></symbol>
  <symbol id="i-check" viewBox="0 0 16 16"><path d="m3.2 8.6 3 3 6.6-7"/></symbol>
  <symbol id="i-chevron-right" viewBox="0 0 16 16"><path d="m6 3.5 4.5 4.5L6 12.5"/></symbol>
  <symbol id="i-chevron-down" viewBox="0 0 16 16"><path d="M3.5 6 8 10.5 12.5 6"/></symbol>
  <symbol id="i-chevron-up" viewBox="0 0 16 16"><path d="M3.5 10 8 5.5l4.5 4.5"/></symbol>
  <symbol id="i-arrow-up" viewBox="0 0 16 16"><path d="M8 13V3M3.5 7.5 8 3l4.5 4.5"/></symbol>
  <symbol id="i-arrow-down" viewBox="0 0 16 16"><path d="M8 3v10M3.5 8.5 8 13l4.5-4.5"/></symbol>
  <symbol id="i-return" viewBox="0 0 16 16"><path d="M13 3.5v4a2 2 0 0 1-2 2H3.5M6 6.5l-3 3 3 3"/></symbol>
  <symbol id="i-sidebar" viewBox="0 0 16 16">
    <rect x="1.75" y="2.5" width="12.5" height="11" rx="2"/>
    <path d="M6 2.5v11"/>
  </symbol>
  <symbol id="i-rail" viewBox="0 0 16 16">
    <rect x="1.75" y="2.5" width="12.5" height="11" rx="2"/>
    <path d="M10 2.5v11"/>
  </symbol>
  <symbol id="i-folder" viewBox="0 0 16 16">
    <path d="M1.75 4.5a1.5 1.5 0 0 1 1.5-1.5h2.6l1.8 1.8h5.1a1.5 1.5 0 0 1 1.5 1.5v5.2a1.5 1.5 0 0 1-1.5 1.5h-9.5a1.5
      1.5 0 0 1-1.5-1.5z"/>
  </symbol>
  <symbol id="i-more" viewBox="0 0 16 16"><path d="M3.5 8h.01M8 8h.01M12.5 8h.01" stroke-width="2"/></symbol>
  <symbol id="i-menu" viewBox="0 0 16 16"><path d="M2.5 4.5h11M2.5 8h11M2.5 11.5h11"/></symbol>
  <symbol id="i-moon" viewBox="0 0 16 16"><path d="M13.5 9.6A5.9 5.9 0 0 1 6.4 2.5a5.9 5.9 0 1 0 7.1 7.1z"/></symbol>
  <symbol id="i-sun" viewBox="0 0 16 16">
    <circle cx="8" cy="8" r="2.75"/>
    <path d="M8 1.5v1.3M8 13.2v1.3M1.5 8h1.3M13.2 8h1.3M3.4 3.4l.9.9M11.7 11.7l.9.9M3.4 12.6l.9-.9M11.7 4.3l.9-.9"/>
  </symbol>
  <symbol id="i-gear" viewBox="0 0 16 16">
    <circle cx="8" cy="8" r="2.1"/>
    <path d="M8 1.75v1.8M8 12.45v1.8M1.75 8h1.8M12.45 8h1.8M3.58 3.58l1.27 1.27M11.15 11.15l1.27 1.27M3.58
      12.42l1.27-1.27M11.15 4.85l1.27-1.27"/>
  </symbol>
  <symbol id="i-export" viewBox="0 0 16 16">
    <path d="M8 10V2M4.8 5.2 8 2l3.2 3.2M2.5 9.5v2.75A1.25 1.25 0 0 0 3.75 13.5h8.5a1.25 1.25 0 0 0 1.25-1.25V9.5"/>
  </symbol>
  <symbol id="i-archive" viewBox="0 0 16 16"><path d="M1.75 3h12.5v3H1.75zM3 6v6.5h10V6M6.5 8.75h3"/></symbol>
  <symbol id="i-copy" viewBox="0 0 16 16">
    <rect x="5.5" y="5.5" width="8" height="8" rx="1.75"/>
    <path d="M10.5 5.5V4.25a1.75 1.75 0 0 0-1.75-1.75h-4.5A1.75 1.75 0 0 0 2.5 4.25v4.5a1.75 1.75 0 0 0 1.75 1.75H5.5"/>
  </symbol>
  <symbol id="i-refresh" viewBox="0 0 16 16"><path d="M13 8a5 5 0 1 1-1.6-3.7L13 5.8M13 2.5v3.3H9.7"/></symbol>
  <symbol id="i-unplug" viewBox="0 0 16 16">
    <path d="M2.2 2.2l11.6 11.6M6 1.9v2M10 1.9v3M4.5 6v1.3a3.6 3.6 0 0 0 4.7 3.4M7.2 5h4.3v2.3c0 .7-.2 1.3-.5 1.8M8
      11v3.2"/>
  </symbol>
  <symbol id="i-bulb" viewBox="0 0 16 16">
    <path d="M5.8 10.6A4.1 4.1 0 1 1 12 7.2c0 1.5-.7 2.6-1.8 3.4v1.2H5.8zM6.3 14h3.4"/>
  </symbol>
  <symbol id="i-layers" viewBox="0 0 16 16">
    <path d="m8 2 6 3-6 3-6-3zM2.3 8.2 8 11l5.7-2.8M2.3 11.2 8 14l5.7-2.8"/>
  </symbol>
  <symbol id="i-file" viewBox="0 0 16 16">
    <path d="M9.2 1.75H4.5A1.25 1.25 0 0 0 3.25 3v10a1.25 1.25 0 0 0 1.25 1.25h7A1.25 1.25 0 0 0 12.75 13V5.3zM9
      2v3.5h3.5"/>
  </symbol>
  <symbol id="i-pencil" viewBox="0 0 16 16"><path d="m10.6 2.7 2.7 2.7-7.7 7.7-3.3.6.6-3.3z"/></symbol>
  <symbol id="i-pencil-square" viewBox="0 0 16 16">
    <path d="M8.5 2.75h-5A1.25 1.25 0 0 0 2.25 4v8.5a1.25 1.25 0 0 0 1.25 1.25H12a1.25 1.25 0 0 0 1.25-1.25v-5M12
      2.2l1.8 1.8-5.6 5.6-2.3.5.5-2.3z"/>
  </symbol>
  <symbol id="i-terminal" viewBox="0 0 16 16">
    <rect x="1.75" y="2.5" width="12.5" height="11" rx="2"/>
    <path d="m4.5 6 2 2-2 2M8.5 10.2h3"/>
  </symbol>
  <symbol id="i-globe" viewBox="0 0 16 16">
    <circle cx="8" cy="8" r="6.1"/>
    <path d="M2 8h12M8 1.9c3.6 3.7 3.6 8.5 0 12.2M8 1.9c-3.6 3.7-3.6 8.5 0 12.2"/>
  </symbol>
  <symbol id="i-trash" viewBox="0 0 16 16"><path d="M2.5 4h11M6 4V2.5h4V4M4 4l.6 9.5h6.8L12 4"/></symbol>
  <symbol id="i-move" viewBox="0 0 16 16"><path d="M2.5 8h11M9.5 4l4 4-4 4"/></symbol>
  <symbol id="i-bot" viewBox="0 0 16 16">
    <rect x="2.5" y="5" width="11" height="8" rx="2"/>
    <path d="M8 2.2V5M6 8.5v1M10 8.5v1"/>
  </symbol>
  <symbol id="i-switch" viewBox="0 0 16 16">
    <path d="M2.5 5.5h9M9 3l2.5 2.5L9 8M13.5 10.5h-9M7 8l-2.5 2.5L7 13"/>
  </symbol>
  <symbol id="i-wrench" viewBox="0 0 16 16">
    <path d="M13.3 4.4 11 6.7 9.3 5l2.3-2.3a3.6 3.6 0 0 0-4.7 4.7L2.6 11.7a1.2 1.2 0 0 0 1.7 1.7l4.3-4.3a3.6 3.6 0 0
      0 4.7-4.7z"/>
  </symbol>
  <symbol id="i-info" viewBox="0 0 16 16"><circle cx="8" cy="8" r="6"/><path d="M8 7.3v3.5M8 5.1h.01"/></symbol>
  <symbol id="i-list" viewBox="0 0 16 16">
    <path d="m1.8 4.2 1.1 1.1 2-2.2M1.8 9.8l1.1 1.1 2-2.2M7.5 4.5h6.5M7.5 10h6.5M7.5 13.2h4"/>
  </symbol>
  <symbol id="i-shield" viewBox="0 0 16 16"><path d="M8 1.9 13 3.8v4c0 3-2 5.2-5 6.3-3-1.1-5-3.3-5-6.3v-4z"/></symbol>
  <symbol id="i-chip" viewBox="0 0 16 16">
    <rect x="4" y="4" width="8" height="8" rx="1.75"/>
    <path d="M6.3 1.75V4M9.7 1.75V4M6.3 12v2.25M9.7 12v2.25M1.75 6.3H4M1.75 9.7H4M12 6.3h2.25M12 9.7h2.25"/>
  </symbol>
  <symbol id="i-gauge" viewBox="0 0 16 16"><path d="M3 12.5a6 6 0 1 1 10 0M8 9.5l2.5-3.5"/></symbol>
  <symbol id="i-at" viewBox="0 0 16 16">
    <circle cx="8" cy="8" r="2.6"/>
    <path d="M10.6 5.5v3.2a1.7 1.7 0 0 0 3.4 0V8a6 6 0 1 0-2.4 4.8"/>
  </symbol>
  <symbol id="i-stop" viewBox="0 0 16 16">
    <rect x="3" y="3" width="10" height="10" rx="1.5" fill="currentColor" stroke="none"/>
  </symbol>
  <symbol id="i-branch" viewBox="0 0 16 16">
    <circle cx="4.5" cy="3.5" r="1.75"/>
    <circle cx="4.5" cy="12.5" r="1.75"/>
    <circle cx="11.5" cy="5" r="1.75"/>
    <path d="M4.5 5.25v5.5M11.5 6.75c0 2.6-2.4 3.2-7 3.5"/>
  </symbol>
  <symbol id="i-circle" viewBox="0 0 16 16"><circle cx="8" cy="8" r="5.75"/></symbol>
  <symbol id="i-circle-check" viewBox="0 0 16 16">
    <circle cx="8" cy="8" r="6"/>
    <path d="m5.3 8.2 1.9 1.9 3.5-3.8"/>
  </symbol>

  <!-- Agents differ in shape. -->
  <symbol id="i-agent-claude-code" viewBox="0 0 16 16">
    <path d="M8 1.8v12.4M1.8 8h12.4M3.6 3.6l8.8 8.8M12.4 3.6l-8.8 8.8"/>
  </symbol>
  <symbol id="i-agent-codex" viewBox="0 0 16 16">
    <path d="M8 1.6 13.5 4.8v6.4L8 14.4 2.5 11.2V4.8zM6 6.3l1.7 1.7L6 9.7M8.6 9.9h1.9"/>
  </symbol>
  <symbol id="i-agent-gemini" viewBox="0 0 16 16">
    <path d="M8 1.8c.5 3.9 2.3 5.7 6.2 6.2-3.9.5-5.7 2.3-6.2 6.2-.5-3.9-2.3-5.7-6.2-6.2 3.9-.5 5.7-2.3 6.2-6.2z"/>
  </symbol>
  <symbol id="i-agent-opencode" viewBox="0 0 16 16">
    <rect x="2.5" y="2.5" width="11" height="11" rx="2"/>
    <rect x="6" y="6" width="4" height="4" rx=".6"/>
  </symbol>
  <symbol id="i-agent-demo" viewBox="0 0 16 16"><circle cx="8" cy="8" r="6"/><path d="M6.6 5.5v5l4-2.5z"/></symbol>
  <symbol id="i-agent-other-0" viewBox="0 0 16 16"><path d="M8 2 14 8l-6 6-6-6z"/><path d="M8 6v4M6 8h4"/></symbol>
  <symbol id="i-agent-other-1" viewBox="0 0 16 16"><path d="M8 2.2 14 13H2z"/><path d="M8 7v2.5"/></symbol>
  <symbol id="i-agent-other-2" viewBox="0 0 16 16"><circle cx="8" cy="8" r="6"/><circle cx="8" cy="8" r="2"/></symbol>

  <!-- Attention, one shape per state. -->
  <symbol id="i-state-needs_permission" viewBox="0 0 16 16">
    <path d="M8 1.9 14.1 8 8 14.1 1.9 8z" fill="currentColor" stroke="currentColor" stroke-width="2"
      stroke-linejoin="round"/>
    <path d="M8 4.6v4M8 11.1v.1" stroke-width="1.8" stroke-linecap="round"/>
  </symbol>
  <symbol id="i-state-error" viewBox="0 0 16 16">
    <path d="M5 1.3h6L14.7 5v6L11 14.7H5L1.3 11V5z" fill="currentColor" stroke="currentColor" stroke-width="1.2"
      stroke-linejoin="round"/>
    <path d="m5.8 5.8 4.4 4.4M10.2 5.8l-4.4 4.4" stroke-width="1.7" stroke-linecap="round"/>
  </symbol>
  <symbol id="i-state-finished" viewBox="0 0 16 16">
    <circle cx="8" cy="8" r="7.2" fill="currentColor" stroke="none"/>
    <path d="m4.9 8.3 2.2 2.2 4.1-4.6" stroke-width="1.7" stroke-linecap="round" stroke-linejoin="round"/>
  </symbol>
  <symbol id="i-state-working" viewBox="0 0 16 16">
    <circle cx="8" cy="8" r="6" stroke="currentColor" stroke-width="2" opacity=".28"/>
    <path d="M8 2a6 6 0 0 1 6 6" stroke="currentColor" stroke-width="2" stroke-linecap="round"/>
  </symbol>
  <symbol id="i-state-starting" viewBox="0 0 16 16">
    <circle cx="8" cy="8" r="6" stroke="currentColor" stroke-width="2" stroke-dasharray="2.2 2.512"/>
  </symbol>
  <symbol id="i-state-reconnecting" viewBox="0 0 16 16">
    <path d="M3 4.7A6 6 0 0 1 13.8 6.7M13 11.3A6 6 0 0 1 2.2 9.3" stroke="currentColor" stroke-width="2"
      stroke-linecap="round"/>
    <path d="M1.7 2.4v3.3H5zM14.3 13.6v-3.3H11z" fill="currentColor" stroke="none"/>
  </symbol>
  <symbol id="i-state-disconnected" viewBox="0 0 16 16">
    <circle cx="8" cy="8" r="6" stroke="currentColor" stroke-width="1.7"/>
    <path d="m3.9 3.9 8.2 8.2" stroke="currentColor" stroke-width="1.7"/>
  </symbol>
</svg>`;

const policy = createPolicy("liminal-sprite", { html: () => SPRITE });
const parsed = new DOMParser().parseFromString(policy.html(SPRITE), "image/svg+xml").documentElement;
const sprite = document.importNode(parsed, true);
sprite.classList.add("sprite");
document.body.prepend(sprite);

"""Reviews by language models: what they are asked, what they may be shown, and which of their words count."""

"""The encoders study: what each encoder makes of embedding look-ups, and which one a link of some speed calls for."""

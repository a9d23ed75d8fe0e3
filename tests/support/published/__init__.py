"""Published peaks that the rule of modelled peaks had not seen when it was frozen."""

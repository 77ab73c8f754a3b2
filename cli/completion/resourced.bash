# shellcheck shell=bash
# Completion for bash of resourcectl, resourced and resource-agent. The programs provide the candidates: `PROGRAM
# __complete -- WORD...` prints one a line, and ends with 3 if the shell should complete names of files.

# _resourced_unquote WORD: sets `unquoted` to the word as the program would get it, and `quote` to the quote that is
# still open at its end.
_resourced_unquote() {
  local word=$1 char i
  quote=''
  unquoted=''
  for ((i = 0; i < ${#word}; i++)); do
    char=${word:i:1}
    if [[ $char == "$quote" ]]; then
      quote=''
    elif [[ -z $quote && $char == [\"\'] ]]; then
      quote=$char
    elif [[ $char == \\ && $quote != \' ]]; then
      ((++i))
      unquoted+=${word:i:1}
    else
      unquoted+=$char
    fi
  done
}

_resourced_complete() {
  local line=${COMP_LINE:0:COMP_POINT} words=() word blank unquoted quote i
  for ((i = 0; i <= COMP_CWORD; i++)); do
    blank=${line%%[![:space:]]*}
    line=${line#"$blank"}
    word=${COMP_WORDS[i]}
    ((i < COMP_CWORD)) || word=$line
    line=${line#"$word"}
    # Bash also ends words at = and :, which are parts of words here.
    if ((i == 0)) || [[ -n $blank ]]; then words+=("$word"); else words[-1]+=$word; fi
  done
  local typed=${words[-1]}
  for i in "${!words[@]}"; do
    _resourced_unquote "${words[i]}"
    # The word at the cursor stays, as its candidates begin with it.
    if ((i < ${#words[@]} - 1)) && [[ ${words[i]} == \~/* ]]; then unquoted=$HOME/${unquoted:2}; fi
    words[i]=$unquoted
  done

  local program=${words[0]} output status candidate char
  output=$("$program" __complete -- "${words[@]:1}" 2>/dev/null)
  status=$?
  local candidates=()
  [[ -z $output ]] || mapfile -t candidates <<<"$output"
  COMPREPLY=()
  # Offer no candidates in a quote that %q cannot continue: its output is no text for the inside of a quote, and the
  # quote decides what the shell runs.
  if [[ -n $quote && ($typed != "$quote"* || ${typed:1} == *[\"\'\\]*) ]]; then return; fi
  # Readline replaces what follows the last of these characters in a word without quotes, or with it if it is @ or $.
  local kept='' breaks=${COMP_WORDBREAKS//[[:space:]\"\']/}
  if [[ $typed != *[\"\'\\]* ]]; then
    for ((i = ${#typed}; i > 0; i--)); do
      if [[ $breaks == *"${typed:i-1:1}"* ]]; then
        kept=${typed:0:i}
        kept=${kept%[@\$]}
        break
      fi
    done
  fi
  for candidate in "${candidates[@]}"; do
    case $quote in
      \') candidate=${candidate//\'/\'\\\'\'} ;;
      \")
        for char in \\ \" \$ \`; do candidate=${candidate//"$char"/"\\$char"}; done
        # Leave the quotes for each `!`: history is expanded inside of them, and an escape would remain in the text.
        candidate=${candidate//!/\"\'!\'\"}
        ;;
      *)
        printf -v candidate '%q' "${candidate#"$kept"}"
        candidate=${candidate//\\,/,}
        ;;
    esac
    COMPREPLY+=("$candidate")
  done
  if ((status == 3)); then
    compopt -o filenames
    mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "${words[-1]#"$kept"}")
  elif ((${#COMPREPLY[@]} == 1)) && [[ ${COMPREPLY[0]} == *[:=,] ]]; then
    compopt -o nospace
  fi
}

complete -F _resourced_complete resourcectl resourced resource-agent

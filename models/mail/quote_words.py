"""The words with which mail programs introduce quoted text, in the languages of their users.

There are three kinds of introductions:

- the header block of Outlook and of forwards ("From: … Sent: … To: … Subject: …"),
- the attribution of Gmail, Apple Mail, Thunderbird and others ("On … Ann wrote:"),
- the title of a forward or a quotation ("----- Original Message -----").

Several spellings of one word are separated by ``|``. Letters are in lower case.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, NamedTuple, TypeAlias

FieldKind: TypeAlias = Literal["from", "sent", "date", "to", "cc", "subject"]


class QuoteWords(NamedTuple):
    """The words of one language.

    Attributes:
        sender, sent, date, to, cc, subject: names of the fields of a header block. ``sent`` are those that
            only mail programs use, ``date`` those that lists and forms use, too.
        openings: how an attribution begins.
        verbs: the verb at the end of an attribution.
        inner_verbs: the verb of an attribution that does not end with it.
        titles: titles of forwards and quotations.
    """

    sender: str = ""
    sent: str = ""
    date: str = ""
    to: str = ""
    cc: str = ""
    subject: str = ""
    openings: str = ""
    verbs: str = ""
    inner_verbs: str = ""
    titles: str = ""


LANGUAGES: Final[dict[str, QuoteWords]] = {
    "en": QuoteWords(
        "from", "sent", "date", "to", "cc|bcc", "subject",
        "on", "wrote|writes", "",
        "original message|original appointment|forwarded message|begin forwarded message|forwarded by",
    ),
    "de": QuoteWords(
        "von", "gesendet", "datum", "an", "cc|kopie", "betreff",
        "am", "", "schrieb",
        "ursprüngliche nachricht|originalnachricht|original-nachricht|ursprünglicher termin"
        "|weitergeleitete nachricht|anfang der weitergeleiteten nachricht|anfang der weitergeleiteten e-mail"
        "|weitergeleitet von",
    ),
    "fr": QuoteWords(
        "de|expéditeur", "envoyé|envoyé le|date d'envoi", "date", "à|a|pour|destinataire", "cc|copie à",
        "objet|sujet",
        "le", "a écrit|écrit", "",
        "message d'origine|message original|message initial|message transféré|début du message transféré"
        "|début du message réexpédié|transféré par",
    ),
    "es": QuoteWords(
        "de", "enviado|enviado el|enviados|fecha de envío", "fecha", "para", "cc|cco", "asunto",
        "el", "escribió|escribio", "",
        "mensaje original|mensaje reenviado|inicio del mensaje reenviado|reenviado por",
    ),
    "ca": QuoteWords(
        "de", "enviat|enviat el", "data", "per a|per", "a/c", "assumpte|tema",
        "el", "va escriure", "", "missatge original|missatge reenviat|inici del missatge reenviat",
    ),
    "pt": QuoteWords(
        "de", "enviado|enviada|enviado em|enviada em|enviado a", "data", "para", "cc|cco", "assunto",
        "em|a|no dia", "escreveu", "",
        "mensagem original|mensagem encaminhada|mensagem reencaminhada|início da mensagem encaminhada"
        "|início da mensagem reencaminhada|encaminhado por",
    ),
    "it": QuoteWords(
        "da", "inviato|inviato il|data invio", "data", "a", "cc|ccn", "oggetto",
        "il|in data", "ha scritto|scrive", "",
        "messaggio originale|messaggio inoltrato|inizio messaggio inoltrato|inoltrato da",
    ),
    "ro": QuoteWords(
        "de la", "trimis|trimis la", "data|dată", "către|catre", "cc", "subiect|subiectul",
        "în|la data", "a scris", "",
        "mesaj original|mesajul original|mesaj redirecționat|mesaj retransmis|mesaj transmis mai departe",
    ),
    "nl": QuoteWords(
        "van", "verzonden|verstuurd", "datum", "aan", "cc|kopie", "onderwerp",
        "op", "geschreven", "schreef",
        "oorspronkelijk bericht|origineel bericht|oorspronkelijke afspraak|doorgestuurd bericht"
        "|begin doorgestuurd bericht",
    ),
    "sv": QuoteWords(
        "från", "skickat|skickades", "datum", "till", "kopia", "ämne",
        "den", "", "skrev",
        "ursprungligt meddelande|originalmeddelande|vidarebefordrat meddelande|vidarebefordrat brev"
        "|vidarebefordrat mejl",
    ),
    "da": QuoteWords(
        "fra", "sendt", "dato", "til", "cc|kopi", "emne",
        "den", "", "skrev",
        "oprindelig meddelelse|original meddelelse|videresendt meddelelse|videresendt besked"
        "|start på videresendt besked|start på videresendt meddelelse",
    ),
    "no": QuoteWords(
        "fra", "sendt", "dato", "til", "kopi", "emne",
        "den", "", "skrev",
        "opprinnelig melding|original melding|videresendt melding|start på videresendt melding"
        "|videresendt e-post",
    ),
    "is": QuoteWords(
        "frá", "sent", "dagsetning|dags", "til", "afrit", "efni",
        "þann|hinn", "", "skrifaði", "upphafleg skilaboð|áframsend skilaboð",
    ),
    "fi": QuoteWords(
        "lähettäjä", "lähetetty", "päivämäärä|päiväys|pvm", "vastaanottaja|vastaanottajat", "kopio", "aihe",
        "", "kirjoitti", "",
        "alkuperäinen viesti|välitetty viesti|edelleenlähetetty viesti|välitetty viesti alkaa"
        "|viesti välitettiin",
    ),
    "et": QuoteWords(
        "saatja|kellelt", "saadetud|saatmisaeg", "kuupäev", "adressaat|saaja|kellele", "koopia", "teema",
        "kontakt|kuupäeval", "kirjutas", "kirjutas", "algne sõnum|algkiri|edastatud sõnum|edastatud kiri",
    ),
    "lv": QuoteWords(
        "no", "nosūtīts|sūtīts", "datums", "kam|adresāts", "kopija", "tēma|temats",
        "", "rakstīja", "", "sākotnējais ziņojums|pārsūtīts ziņojums|pārsūtītais ziņojums",
    ),
    "lt": QuoteWords(
        "nuo", "išsiųsta|siųsta", "data", "kam|skirta", "kopija", "tema",
        "", "rašė|parašė", "", "pradinis laiškas|pirminis pranešimas|persiųstas laiškas",
    ),
    "pl": QuoteWords(
        "od|nadawca", "wysłano|wysłane|wysłany|data wysłania", "data", "do|adresat", "dw|udw|do wiadomości",
        "temat",
        "dnia|w dniu|wiadomość napisana przez", "napisał(a)|napisał|napisała|pisze|nadesłał",
        "wiadomość napisana przez",
        "wiadomość oryginalna|oryginalna wiadomość|treść oryginalnej wiadomości|przekazana wiadomość"
        "|wiadomość przekazana dalej|treść przekazanej wiadomości|początek przekazywanej wiadomości",
    ),
    "cs": QuoteWords(
        "od", "odesláno|odesláno dne", "datum", "komu", "kopie", "předmět",
        "dne", "napsal(a)|napsal|napsala", "",
        "původní zpráva|původní e-mail|přeposlaná zpráva|předaná zpráva|začátek přeposlané zprávy",
    ),
    "sk": QuoteWords(
        "od", "odoslané|odoslaná", "dátum", "komu", "kópia", "predmet",
        "dňa", "napísal(a)|napísal|napísala", "",
        "pôvodná správa|preposlaná správa|začiatok preposlanej správy",
    ),
    "sl": QuoteWords(
        "od", "poslano", "datum", "za", "kp|kopija", "zadeva",
        "v|dne", "napisal(a)|napisal|napisala|piše", "je oseba",
        "izvirno sporočilo|prvotno sporočilo|posredovano sporočilo",
    ),
    "hr": QuoteWords(
        "od|šalje", "poslano|poslato", "datum", "za|prima", "kopija", "predmet|naslov",
        "dana|u",
        "napisao je|napisala je|je napisao|je napisala|je napisao/la|napisao/la|napisao|napisala|piše", "",
        "izvorna poruka|originalna poruka|proslijeđena poruka|prosleđena poruka",
    ),
    "sr": QuoteWords(
        "од|шаље", "послато", "датум", "за|прима", "копија", "предмет|наслов|тема",
        "дана|у", "је написао/ла|је написао|је написала|написао|написала|пише", "",
        "оригинална порука|изворна порука|прослеђена порука",
    ),
    "hu": QuoteWords(
        "feladó", "elküldve|küldve|küldés dátuma", "dátum", "címzett", "másolatot kap|másolat", "tárgy",
        "", "írta|írja", "ezt írta",
        "eredeti üzenet|eredeti levél|továbbított üzenet|továbbított levél",
    ),
    "bg": QuoteWords(
        "от", "изпратено|изпратен", "дата", "до", "копие", "тема|относно",
        "на", "написа|пише", "", "оригинално съобщение|препратено съобщение",
    ),
    "ru": QuoteWords(
        "от|от кого", "отправлено|дата отправки", "дата", "кому", "копия", "тема",
        "", "написал(а)|написал|написала|пишет|писал(а)", "",
        "исходное сообщение|оригинальное сообщение|пересылаемое сообщение|пересланное сообщение"
        "|переадресованное сообщение|начало переадресованного сообщения",
    ),
    "uk": QuoteWords(
        "від|від кого", "надіслано|відправлено", "дата", "кому", "копія", "тема",
        "", "пише|написав(ла)|написав|написала", "",
        "вихідне повідомлення|оригінальне повідомлення|початкове повідомлення|переслане повідомлення"
        "|переадресоване повідомлення|початок переадресованого повідомлення",
    ),
    "el": QuoteWords(
        "από", "στάλθηκε|εστάλη|αποστολή", "ημερομηνία|ημ/νία", "προς", "κοιν|κοινοποίηση", "θέμα",
        "στις|την", "έγραψε|έγραψαν", "",
        "αρχικό μήνυμα|προωθημένο μήνυμα|προωθούμενο μήνυμα|αρχή προωθημένου μηνύματος",
    ),
    "tr": QuoteWords(
        "kimden|gönderen", "gönderildi|gönderilme tarihi|gönderim tarihi", "tarih", "kime|alıcı", "bilgi",
        "konu",
        "", "yazdı|şunu yazdı|şunları yazdı", "şunları yazdı",
        "orijinal ileti|özgün ileti|orijinal mesaj|özgün mesaj|yönlendirilmiş ileti|yönlendirilen ileti"
        "|iletilen ileti|iletilen mesaj|yönlendirilmiş mesaj",
    ),
    "ja": QuoteWords(
        "差出人|送信者|送信元", "送信日時|送信日|送信済み", "日付|日時", "宛先|受信者", "写し", "件名",
        "", "のメール|が書きました|は書きました|書いた", "",
        "元のメッセージ|元のメール|オリジナルメッセージ|転送メッセージ|転送されたメッセージ|転送メール",
    ),
    "zh": QuoteWords(
        "发件人|寄件人|寄件者|發件人|发送人",
        "发送时间|发送日期|发件时间|傳送時間|寄件日期|已傳送|發送時間|發件日期|傳送日期",
        "日期|时间|時間", "收件人|收件者", "抄送|副本|抄送人", "主题|主旨|主題|标题",
        "在|于|於", "写道|寫道|写到|寫到", "",
        "原始邮件|原始郵件|邮件原件|原邮件|转发邮件|转发的邮件|转发邮件信息|轉寄郵件|轉寄的郵件|轉寄郵件訊息|已转发邮件",
    ),
    "ko": QuoteWords(
        "보낸 사람|보낸사람|보낸이|발신",
        "보낸 날짜|보낸날짜|보낸 시간|보낸시간|발신일|전송 시간", "날짜|일시",
        "받는 사람|받는사람|받은 사람|수신", "참조", "제목",
        "", "작성|님이 작성|님이 작성하였습니다|님이 작성한 메시지|님이 씀", "",
        "원본 메시지|원본 메일|원본메일|전달된 메시지|전달된 메일",
    ),
    "th": QuoteWords(
        "จาก", "ส่ง|ส่งเมื่อ|ส่งแล้ว|วันที่ส่ง", "วันที่", "ถึง", "สำเนา|สำเนาถึง", "เรื่อง|หัวเรื่อง",
        "เมื่อ|ในวันที่|วันที่", "เขียนว่า|เขียน", "",
        "ข้อความต้นฉบับ|ข้อความเดิม|ข้อความที่ส่งต่อ|ข้อความที่ถูกส่งต่อ",
    ),
    "vi": QuoteWords(
        "từ|người gửi", "đã gửi|ngày gửi|đã gửi lúc", "ngày|thời gian", "đến|tới|người nhận", "đồng gửi",
        "chủ đề|tiêu đề",
        "vào|ngày|lúc", "đã viết|viết", "",
        "thư gốc|tin nhắn gốc|tin nhắn ban đầu|thư đã chuyển tiếp|thư được chuyển tiếp"
        "|tin nhắn được chuyển tiếp",
    ),
    "id": QuoteWords(
        "dari|pengirim", "dikirim|terkirim", "tanggal", "kepada|untuk|ke", "tembusan", "perihal|subjek|hal",
        "pada|tanggal", "menulis", "", "pesan asli|pesan terusan|pesan yang diteruskan",
    ),
    "ms": QuoteWords(
        "daripada|dari", "dihantar", "tarikh", "kepada", "salinan", "subjek|perkara",
        "pada", "menulis", "", "mesej asal|mesej yang dimajukan",
    ),
    "ar": QuoteWords(
        "من|المرسل", "تم الإرسال|أرسلت|أُرسلت|تاريخ الإرسال|مرسل|مُرسل|تم إرسالها", "التاريخ",
        "إلى|المرسل إليه", "نسخة", "الموضوع",
        "في|بتاريخ", "كتب|كتبت", "كتب|كتبت|كتابة ما يلي بواسطة",
        "الرسالة الأصلية|رسالة أصلية|رسالة معاد توجيهها|رسالة محولة|رسالة مُعاد توجيهها",
    ),
    "he": QuoteWords(
        "מאת|מ", "נשלח|נשלח ב|תאריך שליחה", "תאריך", "אל|ל|עבור", "עותק|העתק", "נושא|הנדון",
        "בתאריך|ב", "כתב/ה|כתב|כתבה", "כתב|כתבה",
        "הודעה מקורית|ההודעה המקורית|הודעה שהועברה|הודעה מועברת",
    ),
    "fa": QuoteWords(
        "از|فرستنده", "ارسال شده|ارسال|تاریخ ارسال|فرستاده شده", "تاریخ", "به|گیرنده", "رونوشت", "موضوع",
        "در|در تاریخ", "نوشت", "", "پیام اصلی|پیام ارسال شده|پیام هدایت شده",
    ),
    "hi": QuoteWords(
        "प्रेषक|से", "भेजा गया|भेजा", "दिनांक|तारीख", "प्रति|को", "प्रतिलिपि", "विषय",
        "", "ने लिखा|लिखा", "", "मूल संदेश|अग्रेषित संदेश",
    ),
}  # fmt: skip


def spellings(words: str) -> Iterator[str]:
    """Yield the spellings of a word.

    >>> list(spellings("cc|bcc")), list(spellings(""))
    (['cc', 'bcc'], [])
    """
    return (word for word in words.split("|") if word)
